"""Entries of others -> the rows of a table beside a board."""

from leaderboards.boards.board import Leaderboard

ENTRY = ("Entry", "By", "Model", "Result", "Seeds", "Status")


def write_entries(leaderboard: Leaderboard) -> list[list[str]]:
    """Each entry as plain words, in the columns of ``ENTRY``: whoever shows them escapes them."""
    lines = []
    for line in leaderboard.entries:
        status = " by ".join(filter(None, (line.entry.status, ", ".join(line.entry.recomputed_by))))
        status = f"withdrawn ({status})" if line.entry.withdrawn else status
        lines.append([line.entry.name, line.entry.who, line.model, line.value, str(line.num_seeds), status])
    return lines
