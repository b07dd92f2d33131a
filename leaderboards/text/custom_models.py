"""A board -> each custom model's numbers beside those of the papers' models in the same row, on the same data, tested:
as a CSV, as the rows of a table, and as lines for the terminal.

The difference and its test are those of ``significance``: Student's t by seed, adjusted by Benjamini and Hochberg's
method over a custom model's comparisons by one metric in a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cell_values import difference_of
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import is_accuracy
from leaderboards.significance.rules import FEWEST_SHOWN, SIGNIFICANCE, adjust
from leaderboards.text.labels import label_names
from leaderboards.text.notation import NOTHING, format_difference
from leaderboards.text.records import render_records
from suite.spec.custom_entries import data_of

CSV_COLUMNS = ("table", "row", "column", "against", "n", "difference", "low", "high", "p_value", "verdict")
COMPARISON = ("Table", "Row", "Custom model", "Against", "Difference", "Adjusted p", "Verdict")


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
    p_value: float | None

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
        for family in families.values():
            adjusted = iter(adjust([one.p_value for one in family if one.p_value is not None]))
            found += [one if one.p_value is None else replace(one, p_value=next(adjusted)) for one in family]
    return found


def _compare(board: Board) -> Iterator[ModelComparison]:
    """Compare with the papers' models of a row by the same metric on the same data, no part of them masked."""
    entries = board.suite.entries_of(board.profile, board.table)
    papers = [other for other in entries if not other.beside and other.experiment.kind != "masking"]
    for entry in entries:
        place = (entry.row, data_of(entry.experiment))
        others = [other for other in papers if (other.row, data_of(other.experiment)) == place]
        shown = [column for other in others for column in other.columns.items() if is_accuracy(column[1])]
        for column in entry.beside:
            cell = board.cells[entry.row, column]
            for against in (one for one, metric in shown if metric == cell.metric):
                difference = difference_of(cell, board.cells[entry.row, against])
                if difference.is_usable:
                    estimate = difference.estimate
                    p_value = estimate.t_test().p if len(estimate.values) >= FEWEST_SHOWN else None
                    yield ModelComparison(entry.custom_model, board, column, against, difference, p_value)


def summarize_comparisons(leaderboard: Leaderboard) -> list[str]:
    """A line for each custom model: against how many of the papers' numbers it is better, and worse."""
    lines, comparisons = [], find_comparisons(leaderboard)
    for model in leaderboard.suite.custom_models:
        own = [comparison.verdict for comparison in comparisons if comparison.custom_model == model.name]
        found = f"better in {own.count('better')}, worse in {own.count('worse')} of {len(own)} comparisons"
        lines.append(f"{model.name}: {found} with the papers' models")
    return lines


def write_comparisons(leaderboard: Leaderboard) -> list[list[str]]:
    """Each comparison as plain words, in the columns of ``COMPARISON``: whoever shows them escapes them."""
    labels = {name: label_names(board) for name, board in leaderboard.tables.items()}
    return [
        [
            comparison.board.table.item,
            " / ".join(comparison.difference.row),
            comparison.column,
            labels[comparison.board.table.name][comparison.against],
            format_difference(comparison.difference),
            NOTHING if comparison.p_value is None else f"{comparison.p_value:.2g}",
            comparison.verdict or NOTHING,
        ]
        for comparison in find_comparisons(leaderboard)
    ]


def render_comparisons_csv(leaderboard: Leaderboard) -> str:
    """A line a comparison; differences in percentage points."""
    return render_records(CSV_COLUMNS, map(_record, find_comparisons(leaderboard)), digits=10)


def _record(comparison: ModelComparison) -> dict[str, object]:
    difference, interval = comparison.difference, comparison.difference.interval
    return {
        "table": comparison.board.table.name,
        "row": " / ".join(difference.row),
        "column": comparison.column,
        "against": comparison.against,
        "n": len(difference.estimate.values) or difference.coverage.num_done,
        "difference": difference.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "p_value": comparison.p_value,
        "verdict": comparison.verdict,
    }
