"""Comparisons of custom models -> a CSV, the rows of a table, and lines for the terminal."""

from collections.abc import Iterable

from leaderboards.boards.board import Leaderboard
from leaderboards.custom_models import ModelComparison, find_comparisons
from leaderboards.text.labels import label_names
from leaderboards.text.notation import NOTHING, format_difference
from leaderboards.text.records import format_numbers, render_records

CSV_COLUMNS = ("table", "row", "column", "against", "n", "difference", "low", "high", "p_value", "verdict")
COMPARISON = ("Table", "Row", "Custom model", "Against", "Difference", "Adjusted p", "Verdict")


def summarize_comparisons(leaderboard: Leaderboard) -> list[str]:
    """A line for each custom model: against how many of the papers' numbers it is better, and worse."""
    lines = []
    comparisons = find_comparisons(leaderboard)
    for name in (custom_model.name for custom_model in leaderboard.suite.custom_models):
        own = [comparison.verdict for comparison in comparisons if comparison.custom_model == name]
        found = f"better in {own.count('better')}, worse in {own.count('worse')} of {len(own)} comparisons"
        lines.append(f"{name}: {found} with the papers' models")
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


def render_comparisons_csv(comparisons: Iterable[ModelComparison]) -> str:
    """A line a comparison; differences in percentage points."""
    return render_records(CSV_COLUMNS, map(_record, comparisons))


def _record(comparison: ModelComparison) -> dict[str, object]:
    interval = comparison.difference.interval
    numbers = {
        "difference": comparison.difference.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "p_value": comparison.p_value,
    }
    return {
        "table": comparison.board.table.name,
        "row": " / ".join(comparison.difference.row),
        "column": comparison.column,
        "against": comparison.against,
        "n": len(comparison.difference.estimate.values) or comparison.difference.coverage.num_done,
        "verdict": comparison.verdict,
        **format_numbers(numbers),
    }
