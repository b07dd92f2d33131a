"""Board -> the paper's line figure: our lines solid, the paper's dashed, the relative gain in a panel of its own.

The paper draws the gain over the accuracies, with a second axis; where ours is small, all lines would coincide. Away
from the paper's scale its numbers stand in panels of their own beside ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.figures.parts import style
from suite.spec.figures import LineFigure

GAIN_MARK = (style.GREEN, "D")


@dataclass(frozen=True)
class Series:
    """A line's cells in the order of ``x``."""

    label: str
    x: tuple[float, ...]
    cells: tuple[Cell, ...]

    def ours(self) -> list[float]:
        """Means; NaN where there is none, so that the line breaks rather than runs on as if there were one."""
        return [cell.mean if cell.mean is not None and cell.is_usable else math.nan for cell in self.cells]

    def papers(self) -> list[float]:
        return [math.nan if cell.paper is None else cell.paper for cell in self.cells]


def draw_lines(figure: LineFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no cell of it has a number of ours."""
    board = leaderboard.board(figure.table)
    series = find_series(board, figure)
    gain = find_gain(board, figure)
    if not any(cell.is_usable for line in [*series, *gain] for cell in line.cells):
        return None
    canvas = style.new_canvas(leaderboard, figure, 7.2, 6.0 if gain else 4.4)
    has_paper = any(cell.paper is not None for line in series for cell in line.cells)
    apart = has_paper and not board.is_at_papers_scale
    heights = (3, 2)[: 1 + len(gain)]
    panels = canvas.subplots(len(heights), 1 + apart, sharex=True, squeeze=False, height_ratios=heights).T  # by whose
    for panel in panels.ravel():
        style.tidy(panel)
    for column, title in zip(panels, ("ours", "the paper's, at its scale") if apart else ("",), strict=True):
        column[0].set_title(title, fontsize=10)
        _label_x(column[-1], board, figure)
    marks = style.marks([line.label for line in series], *[style.GREEN for _ in gain])
    for line in series:
        _draw_series(panels[0][0], panels[-1][0], line, *marks[line.label])
    panels[0][0].set_ylabel(figure.y_label)
    for line in gain:
        _draw_series(panels[0][1], panels[-1][1], line, *GAIN_MARK)
        panels[0][1].set_ylabel(figure.gain_label)
        for column in panels:
            column[1].axhline(0.0, color=style.NEUTRAL, linewidth=0.9)  # below it the baseline is the better one
    entries = style.legend_entries([*marks.items(), *((line.label, GAIN_MARK) for line in gain)], linewidth=2)
    style.add_legend(canvas, entries, _whose([*series, *gain], figure))
    return canvas


def find_series(board: Board, figure: LineFigure) -> list[Series]:
    """A line per column of the figure and per combination of the row keys that are not on the x axis."""
    series = []
    other_keys = [key for key in board.paper.row_keys if key != figure.x_key]
    for others in dict.fromkeys(_others(board, row, figure.x_key) for row in board.paper.rows):
        for label, column in figure.lines.items():
            name = ", ".join(filter(None, (label, style.name_keys(other_keys, others))))
            series.append(_series(board, figure.x_key, column, others, name))
    return [line for line in series if line.cells]


def find_gain(board: Board, figure: LineFigure) -> list[Series]:
    """The relative gain as a list of one line, or of none."""
    if figure.gain_column is None:
        return []
    gain = _series(board, figure.x_key, figure.gain_column, None, figure.gain_label)
    return [gain] if gain.cells else []


def positions(board: Board, x_key: str) -> dict[str, float]:
    """Where the values of a row key stand on the axis: at their number, or one after the other where they are names."""
    index = board.paper.row_keys.index(x_key)
    names = dict.fromkeys(row[index] for row in board.paper.rows)
    try:
        return {name: float(name) for name in names}
    except ValueError:
        return {name: float(place) for place, name in enumerate(names)}


def _series(board: Board, x_key: str, column: str, others: tuple[str, ...] | None, label: str) -> Series:
    index, at = board.paper.row_keys.index(x_key), positions(board, x_key)
    rows = [row for row in board.paper.rows if others is None or _others(board, row, x_key) == others]
    cells = [board.cells[row, column] for row in rows if (row, column) in board.cells]
    cells.sort(key=lambda cell: at[cell.row[index]])
    return Series(label, tuple(at[cell.row[index]] for cell in cells), tuple(cells))


def _others(board: Board, row: tuple[str, ...], x_key: str) -> tuple[str, ...]:
    return tuple(value for key, value in zip(board.paper.row_keys, row, strict=True) if key != x_key)


def _draw_series(axes: Axes, papers: Axes, line: Series, color: str, marker: str) -> None:
    """The paper's line, then ours; a partial cell's marker is hollow, a failed cell has none."""
    faint: dict[str, Any] = {"color": color, "alpha": 0.5, "linestyle": "--", "linewidth": 1.3, "markersize": 3.5}
    papers.plot(line.x, line.papers(), marker=marker, **faint)
    axes.plot(line.x, line.ours(), color=color, linewidth=2)
    for x, mean, cell in zip(line.x, line.ours(), line.cells, strict=True):
        if cell.is_usable and cell.interval is not None:
            style.draw_interval(axes, x, mean, cell.interval, color=color, linewidth=1.6, capsize=3.5)
        face = color if cell.status == "done" else "white"
        axes.plot([x], [mean], color=color, marker=marker, markersize=6.5, markerfacecolor=face, zorder=5)


def _label_x(axes: Axes, board: Board, figure: LineFigure) -> None:
    if figure.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    ticks = positions(board, figure.x_key)
    axes.set_xticks(list(ticks.values()), labels=list(ticks))
    axes.set_xlabel(figure.x_label)


def _whose(series: Sequence[Series], figure: LineFigure) -> list[dict[str, Any]]:
    """Legend: whose numbers they are, by line style."""
    cells = [cell for line in series for cell in line.cells]
    shown = [cell for cell in cells if cell.is_usable]
    interval = ", 95 % interval" if any(cell.interval is not None for cell in shown) else ""
    whose: list[dict[str, Any]] = [{"label": f"ours{interval}", "linewidth": 2}]
    if any(cell.paper is not None for cell in cells):
        whose.append({"label": f"paper, {figure.item}", "linewidth": 1.3, "linestyle": "--", "alpha": 0.6})
    if any(cell.status == "partial" for cell in shown):
        whose.append({"label": "ours, not all seeds", "linestyle": "", "marker": "o", "markerfacecolor": "white"})
    return [{"color": style.NEUTRAL, **entry} for entry in whose]
