"""Board -> one column of a table against another, a point per row: ours filled, the paper's hollow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.figures.parts import style
from leaderboards.significance.rules import Interval
from suite.spec.figures import ScatterFigure

# Where a label may stand, best first: (horizontal, vertical) alignment and the offset in points that goes with it.
_SIDES = (
    ("right", "bottom", -5, 5), ("left", "top", 5, -5), ("left", "bottom", 5, 5), ("right", "top", -5, -5),
    ("left", "center", 7, 0), ("right", "center", -7, 0), ("center", "bottom", 0, 6), ("center", "top", 0, -6),
    ("center", "bottom", 0, 16), ("center", "top", 0, -16),
)  # fmt: skip
_WIDEST_LINEAR = 100  # times the least x that a linear axis can show: small models of ours would all be at its left


@dataclass(frozen=True)
class Point:
    """A row's two numbers, and the interval of y."""

    group: str
    label: str
    x: float
    y: float
    interval: Interval | None
    is_complete: bool = True


def draw_scatter(figure: ScatterFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no row has both numbers."""
    board = leaderboard.board(figure.table)
    ours, papers = find_points(board, figure), find_points(board, figure, of_paper=True)
    if not ours:
        return None
    groups = list(dict.fromkeys(point.group for point in [*ours, *papers]))
    marks = style.marks(groups)
    canvas = style.new_canvas(leaderboard, figure, 7.2, 4.6)
    axes = canvas.add_subplot()
    style.tidy(axes)
    axes.grid(axis="x", color=style.GRID, linewidth=0.7)
    for group, mark in marks.items():
        _draw_group(axes, [point for point in papers if point.group == group], *mark, of_paper=True)
        _draw_group(axes, [point for point in ours if point.group == group], *mark, of_paper=False)
    x = [point.x for point in [*ours, *papers]]
    if figure.log_x or (min(x) > 0 and max(x) > _WIDEST_LINEAR * min(x)):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")  # numbers written out: 0.5, 1, 2, 5, 10
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.1, 0.1)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    style.add_legend(canvas, style.legend_entries(marks.items(), linewidth=1.2), _whose(figure, ours, bool(papers)))
    _label_points(canvas, axes, [*ours, *papers], marks)
    return canvas


def find_points(board: Board, figure: ScatterFigure, *, of_paper: bool = False) -> list[Point]:
    """The rows of this profile that have both numbers: our means, or the paper's numbers."""
    group, label = (board.paper.row_keys.index(key) for key in (figure.group_key, figure.label_key))
    points = []
    for row in board.paper.rows:
        x, y = board.cells.get((row, figure.x_column)), board.cells.get((row, figure.y_column))
        if x is None or y is None or not (of_paper or (x.is_usable and y.is_usable)):
            continue
        x_at, y_at = (x.paper, y.paper) if of_paper else (x.mean, y.mean)
        interval, is_complete = (None, True) if of_paper else (y.interval, x.status == y.status == "done")
        if x_at is not None and y_at is not None:
            points.append(Point(row[group], row[label], x_at, y_at, interval, is_complete))
    return points


def _draw_group(axes: Axes, points: list[Point], color: str, marker: str, of_paper: bool) -> None:
    """A thin line joins the models of a group in the order of x."""
    points = sorted(points, key=lambda point: point.x)
    x, y = [point.x for point in points], [point.y for point in points]
    line: dict[str, Any] = {"linestyle": "--", "alpha": 0.5} if of_paper else {}
    axes.plot(x, y, color=color, linewidth=1.2, **line)
    for point in points:
        if point.interval is not None:
            style.draw_interval(axes, point.x, point.y, point.interval, color=color, linewidth=1.2, capsize=3)
    for edge in (True, False):  # incomplete ones get a dot in the middle of a hollow marker
        chosen = [point for point in points if point.is_complete is edge]
        face = "white" if of_paper or not edge else color
        at = [point.x for point in chosen], [point.y for point in chosen]
        axes.plot(*at, color=color, marker=marker, markersize=7, markerfacecolor=face, linestyle="", zorder=4)
        if not edge:
            axes.plot(*at, color=color, marker=".", markersize=4, linestyle="", zorder=5)


def _whose(figure: ScatterFigure, ours: list[Point], with_paper: bool) -> list[dict[str, Any]]:
    with_interval = any(point.interval is not None for point in ours)
    common = {"color": style.NEUTRAL, "marker": "o", "markersize": 7}
    whose = [{"label": "ours, 95 % interval" if with_interval else "ours", **common}]
    if with_paper:
        whose.append({"label": f"paper, {figure.item}", "linestyle": "--", "markerfacecolor": "white", **common})
    if not all(point.is_complete for point in ours):
        dotted = {"marker": "$\\odot$", "linestyle": "", "color": style.NEUTRAL, "markersize": 7}
        whose.append({"label": "ours, not all seeds", **dotted})
    return whose


def _label_points(canvas: Canvas, axes: Axes, points: Sequence[Point], marks: dict[str, tuple[str, str]]) -> None:
    """Beside each point on the first side where the label meets no other; where there is none, on the best one."""
    canvas.draw_without_rendering()  # settles the layout, which the labels then leave as it is
    inside = axes.get_window_extent()
    shade = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.3}
    half = 4.5 * canvas.dpi / 72
    at = [axes.transData.transform((point.x, point.y)) for point in points]
    taken: list[Bbox] = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in at]
    bars = [[(point.x, point.interval.low), (point.x, point.interval.high)] for point in points if point.interval]
    taken += [Bbox(axes.transData.transform(ends)).padded(1, 0) for ends in bars]
    for point in points:
        options = []
        for horizontal, vertical, dx, dy in _SIDES:
            label = axes.annotate(
                point.label, (point.x, point.y), (dx, dy), textcoords="offset points", ha=horizontal, va=vertical,
                fontsize=8, color=marks[point.group][0], bbox=shade, zorder=3,
            )  # fmt: skip
            label.set_in_layout(False)
            box = label.get_window_extent()
            is_inside = inside.x0 <= box.x0 and inside.y0 <= box.y0 and box.x1 <= inside.x1 and box.y1 <= inside.y1
            hits = sum(box.overlaps(other) for other in taken) + 2 * (not is_inside)
            options.append((hits, label, box))
        best = min(options, key=lambda option: option[0])  # the first of equals
        for option in options:
            if option is not best:
                option[1].remove()
        taken.append(best[2])
