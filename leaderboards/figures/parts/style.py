"""The look that all figures share: colours, the header, the legend, colour bars, and how a canvas becomes bytes."""

import contextlib
import io
import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import ceil, floor, log10
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import Curve
from leaderboards.boards.recorded import Array
from leaderboards.figures.parts.runs import MOST_BANDS
from leaderboards.significance.rules import Interval
from leaderboards.text.notation import scale_title
from suite.spec.figures import Figure

# Okabe and Ito's colours, told apart by the colour-blind; markers repeat the distinction in black and white. With
# seven of the one and ten of the other, the pairs repeat after seventy.
BLACK, GREEN = "#000000", "#009E73"
COLORS = ("#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9", BLACK, GREEN)
MARKERS = ("o", "s", "^", "v", "P", "D", "X", "<", ">", "p")
MODEL_COLORS = {"convit": COLORS[1], "deit": COLORS[0]}  # in every figure
DEPTH_COLORS = "viridis"  # of what is ordered
PALEST = 0.9  # of DEPTH_COLORS: its bright end cannot be read on white
NEUTRAL = "#555555"
GRID = "#dddddd"
DPI = 160
MARGIN_IN = 0.12
_TRACES = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
_LINE_IN = 0.165  # of the text below the title
_MOST_MARKERS = 25  # in a line
_BESIDE, _TICK = 0.02, 0.006  # of the x axis: between the bars beside the ends of lines, and their ticks to a side
_DECADES = 4  # of the colour scale: what attends less is drawn as the least
BAR_IN, BAR_BOTTOM_IN, THICKNESS_IN = 0.7, 0.22, 0.1  # of all that belongs to a bar; of the bar itself, from its top


@contextlib.contextmanager
def default_style() -> Iterator[None]:
    """Matplotlib's own defaults: a user's style must not change the bytes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "leaderboards", "svg.fonttype": "path"})
        matplotlib.rcParams["image.composite_image"] = False  # which would take half of the time of a sheet of maps
        yield


def write(canvas: Canvas, kind: str) -> bytes:
    """The canvas as PNG, SVG or PDF, without a trace of when and with what it was made. Text in the SVG is outlines:
    another font on the reader's side would make labels collide."""
    file = io.BytesIO()
    canvas.savefig(file, format=kind, dpi=DPI, metadata=dict.fromkeys(_TRACES[kind]))
    return file.getvalue()


def new_canvas(leaderboard: Leaderboard, figure: Figure, width: float, height: float, *notes: str) -> Canvas:
    """Make a canvas with a header of question, item, scale and notes.

    Args:
        leaderboard: the leaderboard that the figure belongs to.
        figure: the figure to draw.
        width, height: the size in inches of the content below the header.
        notes: sentences for the header; empty ones are left out.
    """
    paragraphs = (f"{leaderboard.suite.paper}, {figure.item}", scale_title(leaderboard), " ".join(filter(None, notes)))
    return titled_canvas(leaderboard.suite.question, paragraphs, width, height)


def titled_canvas(heading: str, paragraphs: Iterable[str], width: float, height: float) -> Canvas:
    """Make a canvas with a header.

    Args:
        heading: the header's title.
        paragraphs: texts below it.
        width, height: the size in inches of the content below the header.
    """
    title = textwrap.wrap(heading, int(11 * width))
    below = [line for text in paragraphs for line in textwrap.wrap(text, int(15 * width))]
    title_in = 0.2 * len(title)
    header_in = MARGIN_IN + title_in + _LINE_IN * len(below) + 0.1
    total = height + header_in
    canvas = Canvas(figsize=(width, total), dpi=DPI)
    canvas.set_layout_engine("constrained", rect=(0, 0, 1, height / total), w_pad=0.08, h_pad=0.06)
    at: dict[str, Any] = {"x": MARGIN_IN / width, "ha": "left", "va": "top"}
    canvas.text(y=1 - MARGIN_IN / total, s="\n".join(title), fontsize=11, fontweight="bold", **at)
    canvas.text(y=1 - (MARGIN_IN + title_in) / total, s="\n".join(below), fontsize=9, color=NEUTRAL, **at)
    return canvas


def marks(labels: Sequence[str], *reserved: str) -> dict[str, tuple[str, str]]:
    """(colour, marker) of each series, without the reserved colours. A model of ``MODEL_COLORS`` has its own; a second
    series of it has another."""
    own: dict[str, str] = {}  # colour -> label
    for label in labels:
        own.setdefault(next((color for name, color in MODEL_COLORS.items() if name in label.lower()), ""), label)
    colors = [color for color in COLORS if color not in (*reserved, *own)] or list(COLORS)
    rest = itertools.cycle(colors)
    of = {label: color for color, label in own.items() if color}
    return {label: (of.get(label) or next(rest), MARKERS[i % len(MARKERS)]) for i, label in enumerate(labels)}


def shades(color: str, num: int) -> list[str]:
    """``num`` shades of a colour, from dark to light; one is the colour itself."""
    shares = np.linspace(-0.35, 0.5, num) if num > 1 else [0.0]
    rgb = np.array(to_rgb(color))
    mixed = (rgb * (1 + share) if share < 0 else rgb + (1 - rgb) * share for share in shares)
    return [to_hex((one[0], one[1], one[2])) for one in mixed]


def legend_entries(marks: Iterable[tuple[str, tuple[Any, str]]], **line: Any) -> list[dict[str, Any]]:
    """The legend entries of series, each a label and its (colour, marker), with the options that all lines share."""
    return [{"label": label, "color": color, "marker": marker, **line} for label, (color, marker) in marks]


def depth_colors(num: int) -> list[Any]:
    """``num`` colours from dark to light, for what is ordered, such as layers."""
    colors = matplotlib.colormaps[DEPTH_COLORS]
    return [colors(PALEST * i / max(1, num - 1)) for i in range(num)]


def num_columns(num_panels: int, most: int) -> int:
    """The columns of the grid with the fewest rows whose last row is nearly full: four panels make two and two."""
    return ceil(num_panels / ceil(num_panels / most))


def panels(canvas: Canvas, num: int, most: int, **options: Any) -> list[Axes]:
    """Divide a canvas into ``num`` panels, at most ``most`` in a row; the options go to Matplotlib's ``subplots``."""
    columns = num_columns(num, most)
    grid = canvas.subplots(ceil(num / columns), columns, squeeze=False, **options).ravel()
    for axes in grid[num:]:
        axes.remove()
    return list(grid[:num])


def tidy(axes: Axes) -> None:
    """Draw a light horizontal grid and no frame above and to the right."""
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def name_keys(keys: Sequence[str], values: Sequence[str]) -> str:
    """Row keys in words: a number stands after its key, a name alone."""
    pairs = zip(keys, values, strict=True)
    return ", ".join(
        f"{key.removeprefix('num_').replace('_', ' ')} {value}"
        if value.lstrip("+-").replace(".", "", 1).isdecimal()
        else value
        for key, value in pairs
    )


def draw_interval(axes: Axes, x: float, mean: float, interval: Interval, **look: Any) -> None:
    """Draw an interval around a mean, which rounding may have put at one of its ends.

    Args:
        axes: axes to draw in.
        x, mean: place of the mean.
        interval: interval to draw.
        look: options of Matplotlib's ``errorbar``.
    """
    reach = [[max(0.0, mean - interval.low)], [max(0.0, interval.high - mean)]]
    axes.errorbar([x], [mean], yerr=reach, **look)


def draw_curves(axes: Axes, curves: Mapping[str, Curve], marks: Mapping[str, tuple[str, ...]]) -> None:
    """Draw curves by colour, marker and maybe line, with bands where they are few, else with bars at their ends."""
    if not curves:
        middle: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "center"}
        axes.text(0.5, 0.5, "no finished run yet", fontsize=9, color=NEUTRAL, **middle)
        axes.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)  # others may share the axes
        return
    tidy(axes)
    longest = max(curve.epochs[-1] - curve.epochs[0] for curve in curves.values())
    for place, (label, curve) in enumerate(curves.items()):
        color, marker, *line = marks[label]
        every = ceil(len(curve.epochs) / 8) if len(curve.epochs) > _MOST_MARKERS else 1
        start = place * every // len(curves)  # markers of lines that meet stand beside each other
        axes.plot(
            curve.epochs, curve.mean, *line, color=color, marker=marker, linewidth=1.8,
            markersize=5, markevery=(start, every),
        )  # fmt: skip
        if curve.num_seeds > 1 and len(curves) <= MOST_BANDS:
            axes.fill_between(curve.epochs, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
        elif curve.num_seeds > 1:
            x = curve.epochs[-1] + longest * _BESIDE * (1 + place)
            xs, mean = [x, x, np.nan, x - longest * _TICK, x + longest * _TICK], curve.mean[-1]
            ys = [curve.low[-1], curve.high[-1], np.nan, mean, mean]  # the mean as a tick across the bar
            axes.plot(xs, ys, color=color, linewidth=2.2, solid_capstyle="butt")
    axes.set_xlabel("Epoch")


def add_legend(canvas: Canvas, *rows: Sequence[dict[str, Any]], most: int = 4) -> None:
    """Add a legend below the axes. Each of ``rows`` begins a new line, broken into equal ones of at most ``most``
    entries. Matplotlib fills a legend by columns, hence the interleaving."""
    sizes = [num_columns(len(row), most) for row in rows if row]
    lines = [
        row[i : i + size] for row, size in zip(filter(None, rows), sizes, strict=True) for i in range(0, len(row), size)
    ]
    nothing = {"label": " ", "linestyle": ""}
    columns = list(zip_longest(*lines, fillvalue=nothing))
    handles = [Line2D([], [], **style) for column in columns for style in column]
    if handles:
        canvas.legend(handles=handles, loc="outside lower center", ncols=len(columns), frameon=False, fontsize=9)


def log_scale(maps: Iterable[Array], least_ratio: float = 2.0) -> LogNorm:
    """The scale up to the largest attention in the maps, and down by at most four decades, at least ``least_ratio``."""
    values = np.concatenate([np.zeros(0), *(pixels[np.isfinite(pixels)] for pixels in maps)])
    values = values[values > 0]
    highest = float(values.max()) if len(values) else 1.0
    lowest = float(values.min()) if len(values) else highest
    return LogNorm(min(max(lowest, highest * 10.0**-_DECADES), highest / least_ratio), highest, clip=True)


def draw_bar(canvas: Canvas, bar: Axes, norm: LogNorm) -> None:
    """Fill the axes ``bar`` with the scale's colours, and label them below it."""
    canvas.colorbar(ScalarMappable(norm, DEPTH_COLORS), cax=bar, orientation="horizontal", extend="min")
    lowest, highest = float(norm.vmin or 0), float(norm.vmax or 1)
    num_powers_of_ten = floor(log10(highest)) - ceil(log10(lowest)) + 1
    if num_powers_of_ten < 2:  # a logarithmic axis would label every digit, one over the other
        bar.set_xticks(np.geomspace(lowest, highest, 4))
        bar.xaxis.set_major_formatter(f"{{x:.{2 + max(0, ceil(-log10(highest / lowest - 1)))}g}}")
        bar.xaxis.set_minor_locator(NullLocator())
    bar.set_xlabel("Attention (probability)", fontsize=8, labelpad=1)
    bar.tick_params(labelsize=8, pad=1)
