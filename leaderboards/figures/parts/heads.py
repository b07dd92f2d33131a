"""Panels of where heads look relative to their query, as Cordonnier et al. draw them: ``centers`` fills them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, ceil, degrees, log, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from leaderboards.boards.recorded import Array
from leaderboards.figures.parts import style

_GAP_IN, _LEFT_IN, _BELOW_IN, _ABOVE_IN = 0.22, 0.85, 0.45, 0.3
_LEGEND_LINE_IN, _BELOW_LEGEND_IN = 0.2, 0.15
_NARROWEST_IN = 5.6
QUERY_NOTE = "Black outline: the query patch."
RADII = {0.5: sqrt(2 * log(2)), 0.9: sqrt(2 * log(10))}  # in sigmas, of the circle that holds this share
_LINES = {0.5: "-", 0.9: ":"}
# Ten, as papers draw nine heads: those of all figures without the query's black, then some of Tol's and a grey.
_COLORS = (*(color for color in style.COLORS if color != style.BLACK), "#882255", "#332288", "#999933", "#888888")


@dataclass(frozen=True)
class Heads:
    """One layer: ``centers`` (H, 2) in (rows, columns) from the query; ``precisions`` (H, 2, 2) of Gaussian heads."""

    centers: Array
    precisions: Array | None

    def ellipse(self, head: int, share: float) -> Ellipse | None:
        """The ellipse that holds this share of a Gaussian head's attention, x in columns and y in rows; None where it
        is infinite. Along an eigenvector of the precision with eigenvalue p, sigma is p^(-1/2)."""
        if self.precisions is None:
            return None
        eigenvalues, vectors = np.linalg.eigh(np.asarray(self.precisions[head], dtype=np.float64))
        if eigenvalues[0] <= 0:
            return None
        long, short = 2 * RADII[share] / np.sqrt(eigenvalues)  # eigenvalues ascend
        (row, column), (y, x) = vectors[:, 0], self.centers[head]
        return Ellipse((float(x), float(y)), long, short, angle=degrees(atan2(row, column)), fill=False)

    def reach(self) -> float:
        """How far from the query, along rows or columns, the largest of the drawn ellipses extends."""
        ellipses = (self.ellipse(head, max(RADII)) for head in range(len(self.centers)))
        boxes = [ellipse.get_extents().get_points() for ellipse in ellipses if ellipse is not None]
        return max((float(np.abs(box).max()) for box in boxes), default=0.0)


@dataclass(frozen=True)
class Panel:
    """Heads at one moment, and the ``trail`` (times, H, 2) of centers that led them there."""

    title: str
    heads: Heads
    trail: Array | None = None


@dataclass(frozen=True)
class Group:
    """A model's panels, which share their axes' limits: ``half`` the side from the query."""

    label: str
    panels: Sequence[Panel]
    half: float


def view(centers: Sequence[Array], trained: Sequence[Heads], farthest: float) -> float:
    """Half the side of a model's panels: all centers and the trained heads' ellipses, but not beyond ``farthest``, nor
    so far that the centers fill less than half of it."""
    reach = max(float(np.abs(places).max(initial=0.0)) for places in centers)
    of_centers = max(2.0, 1.15 * reach) + 0.5
    of_ellipses = 1.05 * max((heads.reach() for heads in trained), default=0.0)
    return min(max(of_centers, min(of_ellipses, 2 * of_centers)), farthest)


def sheet_size(groups: Sequence[Group], columns: int, side: float) -> tuple[float, float]:
    """(width, height) in inches of all panels, ``side`` inches each, with the legend."""
    rows = sum(ceil(len(group.panels) / columns) for group in groups)
    width = _LEFT_IN + columns * (side + _GAP_IN)
    num_heads = _count_heads(groups)
    legend = ceil(num_heads / style.num_columns(num_heads, columns + 2)) * _LEGEND_LINE_IN + _BELOW_LEGEND_IN
    return max(_NARROWEST_IN, width), rows * (side + _BELOW_IN + _ABOVE_IN) + legend


def draw_groups(canvas: Canvas, groups: Sequence[Group], columns: int, side: float) -> None:
    """Fill the canvas's lower ``sheet_size`` with rows of panels and the legend of the heads.

    Args:
        canvas: the canvas to draw on.
        groups: the groups, each of which begins a new row.
        columns: the largest number of panels in a row.
        side: the side of a panel in inches.
    """
    canvas.set_layout_engine("none")  # layouts of Matplotlib do not keep squares of one size
    width, height = canvas.get_size_inches()
    top = sheet_size(groups, columns, side)[1]
    for group in groups:
        for first in range(0, len(group.panels), columns):
            top -= side + _BELOW_IN + _ABOVE_IN
            for column, panel in enumerate(group.panels[first : first + columns]):
                left = _LEFT_IN + column * (side + _GAP_IN)
                axes = canvas.add_axes((left / width, (top + _BELOW_IN) / height, side / width, side / height))
                _draw_panel(axes, panel, group.half)
                axes.set_ylabel(f"{group.label}\nRows (patches)" if column == 0 else "", fontsize=9)
                axes.tick_params(labelsize=7, labelleft=column == 0)
                if first + column + columns >= len(group.panels):
                    axes.set_xlabel("Columns (patches)", fontsize=9)
    heads = [(f"Head {number}", mark) for number, mark in enumerate(head_marks(_count_heads(groups)), start=1)]
    style.add_legend(canvas, style.legend_entries(heads, linestyle="", markersize=6), most=columns + 2)


def head_marks(num: int) -> list[tuple[str, str]]:
    """(colour, marker) of so many heads: ten colours, then the same ones with other markers."""
    markers, num_colors = style.MARKERS, len(_COLORS)
    return [(_COLORS[i % num_colors], markers[(i + i // num_colors) % len(markers)]) for i in range(num)]


def _count_heads(groups: Sequence[Group]) -> int:
    """The number of heads in the layer with the most."""
    return max(1, *(len(panel.heads.centers) for group in groups for panel in group.panels))


def _draw_panel(axes: Axes, panel: Panel, half: float) -> None:
    axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor=style.BLACK, linewidth=1.2, zorder=1))
    for head, (color, marker) in enumerate(head_marks(len(panel.heads.centers))):
        _draw_head(axes, panel, head, color, marker)
    num_outside = int((np.abs(panel.heads.centers) > half).any(axis=1).sum())
    if num_outside:
        axes.text(0.03, 0.03, f"{num_outside} outside", transform=axes.transAxes, fontsize=7, color=style.NEUTRAL)
    axes.set_title(panel.title, fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set(xlim=(-half, half), ylim=(half, -half), aspect="equal")  # rows count downwards


def _draw_head(axes: Axes, panel: Panel, head: int, color: str, marker: str) -> None:
    row, column = panel.heads.centers[head]
    mark: dict[str, Any] = {"marker": marker, "linestyle": "", "color": color}
    axes.plot([column], [row], markersize=5.5, markeredgecolor="white", markeredgewidth=0.4, zorder=4, **mark)
    axes.annotate(  # its number beside it, on white so that it is legible over lines
        str(head + 1), (column, row), (2.5, 2.0), textcoords="offset points", fontsize=6.5, fontweight="bold",
        color=color, zorder=5, annotation_clip=True, path_effects=[withStroke(linewidth=1.5, foreground="white")],
    )  # fmt: skip
    if panel.trail is not None:
        rows, columns = panel.trail[:, head].T
        axes.plot(columns, rows, color=color, linewidth=0.8, zorder=3)
        axes.plot(
            columns[:1], rows[:1], markersize=5.0, markerfacecolor="white", markeredgewidth=0.8, zorder=3.5, **mark
        )
    for share, line in _LINES.items():
        ellipse = panel.heads.ellipse(head, share)
        if ellipse is not None:
            ellipse.set(edgecolor=color, linestyle=line, linewidth=1.0, zorder=3)
            axes.add_patch(ellipse)
