"""Challenges -> a CSV, the rows of a table, and lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from leaderboards.boards.board import Leaderboard
from leaderboards.challenges import Challenge, find_challenges
from leaderboards.text.notation import NOTHING, format_difference
from leaderboards.text.records import format_numbers, render_records

CSV_COLUMNS = ("table", "row", "column", "against", "n", "difference", "low", "high", "p_value", "verdict")
COMPARISON = ("table", "row", "challenger", "against", "difference", "p", "verdict")


def summarize_challenges(leaderboard: Leaderboard) -> list[str]:
    """A line for each challenger: against how many of the papers' numbers it is better, and worse."""
    lines = []
    challenges = find_challenges(leaderboard)
    for name in (challenger.name for challenger in leaderboard.suite.challengers):
        own = [challenge.verdict for challenge in challenges if challenge.challenger == name]
        found = f"better in {own.count('better')}, worse in {own.count('worse')} of {len(own)} comparisons"
        lines.append(f"{name}: {found} with the papers' models")
    return lines


def write_challenges(leaderboard: Leaderboard) -> list[list[str]]:
    """Each comparison as plain words, in the columns of ``COMPARISON``: whoever shows them escapes them."""
    return [
        [
            challenge.board.table.item,
            " / ".join(challenge.difference.row),
            challenge.column,
            challenge.against,
            format_difference(challenge.difference),
            NOTHING if challenge.p_value is None else f"{challenge.p_value:.2g}",
            challenge.verdict or NOTHING,
        ]
        for challenge in find_challenges(leaderboard)
    ]


def render_challenges_csv(challenges: Iterable[Challenge]) -> str:
    """A line a comparison; differences in percentage points."""
    return render_records(CSV_COLUMNS, map(_record, challenges))


def _record(challenge: Challenge) -> dict[str, object]:
    interval = challenge.difference.interval
    numbers = {
        "difference": challenge.difference.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "p_value": challenge.p_value,
    }
    return {
        "table": challenge.board.table.name,
        "row": " / ".join(challenge.difference.row),
        "column": challenge.column,
        "against": challenge.against,
        "n": min(challenge.difference.estimate.sizes, default=challenge.difference.coverage.num_done),
        "verdict": challenge.verdict,
        **format_numbers(numbers),
    }
