"""Runs of kind "maps" -> where each head of each layer looks relative to its query, as Cordonnier et al. draw it."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, ceil, degrees, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.ticker import MaxNLocator

from leaderboards.figures import style
from leaderboards.figures.places import first_runs, name_missing, name_seeds
from leaderboards.figures.recorded import Array, Recorded, read_recorded
from suite.tables import CentersFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from leaderboards.aggregate import SuiteBoard

_LAYERS_IN_ROW = 6
_SIDE_IN, _GAP_IN, _LEFT_IN, _BELOW_IN, _PITCH_IN, _LEGEND_IN = 1.6, 0.22, 0.75, 0.45, 2.35, 0.5
_READ = ("/centers", "/gaussian_centers", "/gaussian_precision")
RADII = {0.5: sqrt(2 * log(2)), 0.9: sqrt(2 * log(10))}  # in sigmas, of the circle that holds this share
_LINES = {0.5: "-", 0.9: ":"}


@dataclass(frozen=True)
class Heads:
    """One layer: ``centers`` (H, 2) in (rows, columns) from the query; ``precisions`` (H, 2, 2) of Gaussian heads."""

    centers: Array
    precisions: Array | None

    def reach(self) -> float:
        """How far from the query the farthest center is, along either axis."""
        return float(np.abs(self.centers).max(initial=0.0))

    def ellipse(self, head: int, share: float) -> Ellipse | None:
        """What holds this share of a Gaussian head's attention."""
        if self.precisions is None:
            return None
        return find_ellipse(self.centers[head], self.precisions[head], share)


def draw_centers(figure: CentersFigure, boards: SuiteBoard, store: Path) -> Canvas | None:
    """The figure; None while no maps are recorded."""
    runs = first_runs(boards, figure.models, store)
    read = {title: read_recorded(run, _READ) for title, (_, run) in runs.items()}
    found = {title: (maps.grid, find_heads(maps)) for title, maps in read.items() if maps is not None}
    if not found:
        return None
    columns = min(_LAYERS_IN_ROW, max(len(layers) for _, layers in found.values()))
    rows = {title: ceil(len(layers) / columns) for title, (_, layers) in found.items()}
    layers = [heads for _, of_model in found.values() for heads in of_model]
    notes = (_explain(layers), name_seeds({title: runs[title] for title in found}))
    missing = name_missing(boards, figure.models, found)
    width = max(5.6, _LEFT_IN + columns * (_SIDE_IN + _GAP_IN))
    canvas = style.new_canvas(boards, figure, width, sum(rows.values()) * _PITCH_IN + _LEGEND_IN, *notes, missing)
    canvas.set_layout_engine("none")
    top = 0
    for title, (size, of_model) in found.items():
        panels = [_add_panel(canvas, top + i // columns, i % columns, sum(rows.values())) for i in range(len(of_model))]
        _draw_model(panels, title, columns, of_model, view(of_model, size))
        top += rows[title]
    _add_legend(canvas, max(len(heads.centers) for heads in layers), columns + 2)
    return canvas


def _add_panel(canvas: Canvas, row: int, column: int, num_rows: int) -> Axes:
    """Placed by hand: squares of one size are more than matplotlib's layouts can do."""
    width, height = canvas.get_size_inches()
    left, bottom = _LEFT_IN + column * (_SIDE_IN + _GAP_IN), _LEGEND_IN + (num_rows - 1 - row) * _PITCH_IN + _BELOW_IN
    return canvas.add_axes((left / width, bottom / height, _SIDE_IN / width, _SIDE_IN / height))


def find_heads(maps: Recorded) -> list[Heads]:
    """Layer by layer the learned centers of Gaussian heads, else where attention was measured to lie."""
    found = []
    for layer in range(len(maps.layers)):
        learned = maps.of_layer("after", layer, "gaussian_centers")
        measured = maps.of_layer("after", layer, "centers")
        centers = learned if learned is not None else measured
        nothing = np.zeros((0, 2))
        found.append(
            Heads(nothing if centers is None else centers, maps.of_layer("after", layer, "gaussian_precision"))
        )
    return found


def view(layers: list[Heads], grid: tuple[int, int]) -> float:
    """Half the side of a model's panels: all centers, but not beyond what a query in a corner can see."""
    return min(max(2.0, 1.15 * max(heads.reach() for heads in layers)) + 0.5, float(max(grid)))


def find_ellipse(center: Array, precision: Array, share: float) -> Ellipse | None:
    """The ellipse that holds this share of a Gaussian head's attention, x in columns and y in rows; None where the
    head attends without limit in some direction.

    Along an eigenvector of the precision with eigenvalue p, sigma is p^(-1/2).
    """
    eigenvalues, vectors = np.linalg.eigh(np.asarray(precision, dtype=np.float64))
    if eigenvalues[0] <= 0:
        return None
    long, short = 2 * RADII[share] / np.sqrt(eigenvalues)  # eigenvalues ascend
    row, column = vectors[:, 0]
    return Ellipse((float(center[1]), float(center[0])), long, short, angle=degrees(atan2(row, column)), fill=False)


def _draw_model(panels: list[Axes], title: str, columns: int, layers: list[Heads], half: float) -> None:
    for number, axes in enumerate(panels):
        _draw_layer(axes, layers[number], half)
        axes.set_title(f"Layer {number + 1}", fontsize=9)
        is_first = number % columns == 0
        axes.set_ylabel(f"{title}\nRows (patches)" if is_first else "", fontsize=9)
        axes.tick_params(labelsize=7, labelleft=is_first)
        if number + columns >= len(layers):
            axes.set_xlabel("Columns (patches)", fontsize=9)


def _draw_layer(axes: Axes, heads: Heads, half: float) -> None:
    axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, facecolor="black", zorder=1))
    for number, (color, marker) in enumerate(style.marks(len(heads.centers), style.BLACK)):
        row, column = heads.centers[number]
        mark: dict[str, Any] = {"color": color, "marker": marker, "markeredgecolor": "white", "markeredgewidth": 0.4}
        axes.plot([column], [row], markersize=5.5, linestyle="", zorder=4, **mark)
        for share, line in _LINES.items():
            ellipse = heads.ellipse(number, share)
            if ellipse is not None:
                ellipse.set(edgecolor=color, linestyle=line, linewidth=1.0, zorder=3)
                axes.add_patch(ellipse)
    num_outside = int((np.abs(heads.centers) > half).any(axis=1).sum())
    if num_outside:
        axes.text(0.03, 0.03, f"{num_outside} outside", transform=axes.transAxes, fontsize=7, color=style.NEUTRAL)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlim(-half, half)
    axes.set_ylim(half, -half)  # rows count downwards
    axes.set_aspect("equal")


def _explain(layers: list[Heads]) -> str:
    if any(heads.precisions is not None for heads in layers):
        circles = ", which holds 50 % (solid) and 90 % (dotted) of it within its ellipses"
        return f"Black square: the query patch. Markers: centers of each head's Gaussian attention{circles}."
    return "Black square: the query patch. Markers: where each head's attention lies on average."


def _add_legend(canvas: Canvas, num_heads: int, most: int) -> None:
    heads = [
        {"label": f"Head {number}", "color": color, "marker": marker, "linestyle": "", "markersize": 6}
        for number, (color, marker) in enumerate(style.marks(num_heads, style.BLACK), start=1)
    ]
    style.add_legend(canvas, heads, most=most)
