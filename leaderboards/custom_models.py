"""A board -> each custom model's numbers beside those of the papers' models in the same row, on the same data, tested.

The difference and its test are those of ``significance``: Student's t by seed, adjusted by Benjamini and Hochberg's
method over a custom model's comparisons by one metric in a table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cell_values import difference_of
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import is_accuracy
from leaderboards.significance.rules import FEWEST_SHOWN, SIGNIFICANCE, adjust
from suite.spec.custom_entries import data_of
from suite.spec.profile import Entry


@dataclass(frozen=True)
class ModelComparison:
    """By how much a custom model's number exceeds one of the papers' models'.

    ``p_value`` is adjusted; None below three seeds that both have.
    """

    custom_model: str
    board: Board
    column: str
    against: str
    difference: Cell
    p_value: float | None = None

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` where the seeds tell them apart, else empty."""
        if self.p_value is None or self.p_value >= SIGNIFICANCE:
            return ""
        return "better" if (self.difference.mean or 0.0) > 0 else "worse"


def find_comparisons(leaderboard: Leaderboard) -> list[ModelComparison]:
    """Compare every custom model's accuracies, table by table, in the order of its rows, where both sides have one."""
    found = []
    for board in leaderboard.tables.values():
        families: dict[tuple[str, str], list[ModelComparison]] = {}
        for comparison in _compare(board):
            families.setdefault((comparison.custom_model, comparison.difference.metric), []).append(comparison)
        found += [comparison for family in families.values() for comparison in _adjust(family)]
    return found


def _compare(board: Board) -> Iterator[ModelComparison]:
    entries = board.suite.entries_of(board.profile, board.table)
    for entry in entries:
        for column in entry.beside:
            cell = board.cells[entry.row, column]
            for against in _opponents(entry, entry.columns[column], entries) if is_accuracy(cell.metric) else ():
                difference = difference_of(cell, board.cells[entry.row, against])
                if difference.is_usable:
                    yield ModelComparison(entry.custom_model, board, column, against, difference)


def _opponents(entry: Entry, metric: str, entries: Iterable[Entry]) -> list[str]:
    """Columns of the row that show the papers' models by the same metric on the same data, no part of them masked."""
    data = data_of(entry.experiment)
    models = [other for other in entries if not other.beside and other.experiment.kind != "masking"]
    return [
        column
        for other in models
        if other.row == entry.row and data_of(other.experiment) == data
        for column, shown in other.columns.items()
        if shown == metric
    ]


def _adjust(family: list[ModelComparison]) -> list[ModelComparison]:
    estimates = [comparison.difference.estimate for comparison in family]
    p_values = [one.t_test().p if len(one.values) >= FEWEST_SHOWN else None for one in estimates]
    adjusted = iter(adjust([p for p in p_values if p is not None]))
    return [
        comparison if p is None else replace(comparison, p_value=next(adjusted))
        for comparison, p in zip(family, p_values, strict=True)
    ]
