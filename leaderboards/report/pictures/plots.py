"""Cells of a column -> ours, its interval and the paper's number as positions in the small plots of the cells.

All plots of a column share one scale. Away from the paper's scale a plot shows the cell's effect beside the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leaderboards.boards.board import Board
from leaderboards.boards.cells import Cell
from leaderboards.significance.estimates import Interval
from suite.spec.profile import Row

WIDTH = 100.0
_EDGE = 5.0  # where the smallest and the largest number stand


@dataclass(frozen=True)
class Marks:
    """The numbers of one plot; None where there is none."""

    ours: float | None
    interval: Interval | None = None
    paper: float | None = None
    zero: float | None = None  # of an effect

    @property
    def numbers(self) -> list[float]:
        reach = [self.interval.low, self.interval.high] if self.interval else []
        return [number for number in (self.ours, self.paper, self.zero, *reach) if number is not None]


@dataclass(frozen=True)
class Plot:
    """The same as positions from 0 to ``WIDTH``."""

    ours: float | None
    low: float | None
    high: float | None
    paper: float | None
    zero: float | None


def plot_column(board: Board, column: str) -> dict[Row, Plot]:
    """The plots of one column by row; none where there is no number of ours, nor anything to see beside it."""
    cells = {row: cell for (row, of), cell in board.cells.items() if of == column}
    compared = any(of == column for _, of in board.effects)
    marks = {row: _effect_marks(board, cell) if compared else _marks(board, cell) for row, cell in cells.items()}
    if not any(found and len(found.numbers) > 1 for found in marks.values()):
        return {}
    return scale(marks)


def scale(marks: Mapping[Row, Marks | None]) -> dict[Row, Plot]:
    """Place the numbers of several plots on one scale."""
    shown = {row: found for row, found in marks.items() if found is not None and found.ours is not None}
    at = _Scale(number for found in shown.values() for number in found.numbers)
    return {
        row: Plot(
            ours=at(found.ours),
            low=at(found.interval.low if found.interval else None),
            high=at(found.interval.high if found.interval else None),
            paper=at(found.paper),
            zero=at(found.zero),
        )
        for row, found in shown.items()
    }


class _Scale:
    def __init__(self, numbers: Iterable[float]) -> None:
        known = list(numbers) or [0.0]
        self._lowest, self._span = min(known), max(known) - min(known)

    def __call__(self, number: float | None) -> float | None:
        if number is None:
            return None
        share = (number - self._lowest) / self._span if self._span else 0.5
        return round(_EDGE + share * (WIDTH - 2 * _EDGE), 1)


def _marks(board: Board, cell: Cell) -> Marks | None:
    """A number beside the paper's, where the two may be compared: at its scale, or where both are gains or changes."""
    if not cell.is_usable:
        return None
    comparable = board.is_at_papers_scale or not cell.metric
    return Marks(cell.mean, cell.interval, cell.paper if comparable else None, 0.0 if cell.is_change else None)


def _effect_marks(board: Board, cell: Cell) -> Marks | None:
    effect = board.effects.get((cell.row, cell.column))
    found = effect.difference if effect else None
    return Marks(found.mean, found.interval, found.paper, 0.0) if found and found.is_usable else None
