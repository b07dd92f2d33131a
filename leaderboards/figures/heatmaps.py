"""Board -> heat map: one column of a table over two of its row keys, our number in each cell, the paper's below it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.figures.parts import style
from leaderboards.text.notation import format_value
from suite.spec.figures import HeatmapFigure

DASH = "\N{EN DASH}"
NOT_ALL_SEEDS = "*"
_EMPTY = "#eeeeee"


@dataclass(frozen=True)
class Grid:
    """Values of ``x`` and ``y`` in the table's order, and the cells at (y, x); ``title`` names the other row keys."""

    title: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    def values(self) -> NDArray[np.float64]:
        """(rows, columns) means; NaN where there is none to show."""
        found = [[self.cells.get((y, x)) for x in self.x] for y in self.y]
        means = [[cell.mean if cell is not None and cell.is_usable else None for cell in row] for row in found]
        return np.array(means, dtype=np.float64)


def draw_heatmap(figure: HeatmapFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no cell of it has a number of ours."""
    board = leaderboard.board(figure.table)
    grids = find_grids(board, figure)
    shown = np.concatenate([[math.nan], *(grid.values().ravel() for grid in grids)])
    if np.isnan(shown).all():
        return None
    norm = Normalize(float(np.nanmin(shown)), float(np.nanmax(shown)))
    columns = style.num_columns(len(grids), 3)
    cell_in = 0.62 if len(grids[0].x) > 6 else 0.75
    width = columns * (cell_in * len(grids[0].x) + 1.1) + 1.2
    height = math.ceil(len(grids) / columns) * (0.5 * len(grids[0].y) + 0.8)
    canvas = style.new_canvas(leaderboard, figure, max(6.4, width), max(3.0, height), *_notes(grids))
    all_axes = style.panels(canvas, len(grids), 3)
    for axes, grid in zip(all_axes, grids, strict=True):
        image = _draw_grid(axes, grid, norm, board.paper.decimals(figure.column))
        axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    canvas.colorbar(image, ax=all_axes, label=figure.value_label, fraction=0.05, pad=0.02)
    return canvas


def find_grids(board: Board, figure: HeatmapFigure) -> list[Grid]:
    """One grid, or one per combination of further row keys; rows and columns in the table's order."""
    keys = board.paper.row_keys
    x_index, y_index = keys.index(figure.x_key), keys.index(figure.y_key)
    found: dict[str, dict[tuple[str, str], Cell]] = {}
    for row in board.paper.rows:
        if (row, figure.column) in board.cells:
            others = [i for i in range(len(keys)) if i not in (x_index, y_index)]
            title = style.name_keys([keys[i] for i in others], [row[i] for i in others])
            cells = found.setdefault(title, {})
            cells[row[y_index], row[x_index]] = board.cells[row, figure.column]
    x = tuple(dict.fromkeys(row[x_index] for row in board.paper.rows))
    y = tuple(dict.fromkeys(row[y_index] for row in board.paper.rows))
    return [Grid(title, x, y, cells) for title, cells in found.items()]


def _draw_grid(axes: Axes, grid: Grid, norm: Normalize, decimals: int) -> Any:
    values = grid.values()
    axes.set_facecolor(_EMPTY)
    image = axes.imshow(values, norm=norm, cmap="cividis", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = format_grid_cell(grid.cells.get((grid.y[row], grid.x[column])), decimals)
        color = "white" if norm(value) < 0.5 else "black"  # also black where there is no value
        axes.text(column, row, text, ha="center", va="center", fontsize=9, linespacing=1.1, color=color)
    axes.set_xticks(range(len(grid.x)), labels=grid.x)
    axes.set_yticks(range(len(grid.y)), labels=grid.y)
    axes.set_title(grid.title, fontsize=10)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def format_grid_cell(cell: Cell | None, decimals: int) -> str:
    """Ours with a star while seeds are missing, a dash where there is nothing, and the paper's in brackets."""
    if cell is None:
        return DASH
    ours = format_value(cell.mean, decimals) if cell.is_usable else DASH
    ours += NOT_ALL_SEEDS if cell.is_usable and cell.status == "partial" else ""
    return ours if cell.paper is None else f"{ours}\n({format_value(cell.paper, decimals)})"


def _notes(grids: list[Grid]) -> list[str]:
    cells = [cell for grid in grids for cell in grid.cells.values()]
    papers = "In brackets: the paper's." if any(cell.paper is not None for cell in cells) else ""
    return [papers, f"{NOT_ALL_SEEDS} not all seeds." if any(cell.status == "partial" for cell in cells) else ""]
