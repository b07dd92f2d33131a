"""Board -> CSV in the layout of the paper's table, and Markdown that reads well in a terminal too.

Neither holds a date or a machine's name, so that the same runs give the same bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from math import ceil

from leaderboards.aggregate import STATUSES, Board, Cell
from leaderboards.notation import NOTHING, write_difference, write_ours, write_status, write_value

COLUMNS_PER_TABLE = 3  # with ours, paper and diff for each, more would not fit a terminal's width

LEGEND = """\
Ours is the mean over n seeds, ± half the width of its 95 % confidence interval (Student's t, from two seeds on);
diff is ours minus the paper's, before rounding. What is not complete is marked in the table: partial 2/3 (two of three
seeds are done), failed (a seed has no usable result; the mean is of the others, and the CSV leaves the place empty),
missing (no seed is done). A dash: no number, or a place that this profile does not fill."""


def render_csv(board: Board) -> str:
    """The paper's table with our means: its header, row order and decimals.

    A cell without a value is empty, and so is a failed one: the file has no place to say that seeds are left out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(board.paper.header)
    for row in board.paper.rows:
        columns = board.paper.header[len(row) :]
        writer.writerow([*row, *(_csv_value(board, row, column) for column in columns)])
    return text.getvalue()


def render_markdown(board: Board) -> str:
    """The whole leaderboard for a reader: scale first, then the tables, what failed, and the footnotes."""
    suite = board.suite
    blocks = [
        f"# {suite.name}: ours beside {suite.paper}, {suite.item}",
        suite.question,
        _scale_note(board),
        _counts(board),
        *(_table(board, columns) for columns in _split(board.columns)),
        LEGEND,
        *_unfilled(board),
        *_failures(board),
        *_list("## Notes", suite.footnotes),
    ]
    return "\n\n".join(blocks) + "\n"


def scale_title(board: Board) -> str:
    """One line that says whether the numbers may be compared with the paper's."""
    if board.profile_name == "paper":
        return "Profile paper: the paper's own scale."
    return f"Profile {board.profile_name}: another scale than the paper's, not comparable with its numbers."


def _csv_value(board: Board, row: tuple[str, ...], column: str) -> str:
    cell = board.cells.get((row, column))
    if cell is None or cell.mean is None or cell.status == "failed":
        return ""
    return write_value(cell.mean, board.paper.decimals(column))


def _scale_note(board: Board) -> str:
    lines = [f"**{scale_title(board)}**"]
    if board.profile.scale_note:
        lines.append(f"{board.profile.scale_note.rstrip('.')}.")
    if board.profile_name != "paper":
        lines.append(
            "The differences below say how far apart the two scales are, not how well the paper is reproduced."
        )
    return "\n".join(f"> {line}" for line in lines)


def _split(columns: Sequence[str]) -> list[Sequence[str]]:
    """Evenly into as few tables as fit: four columns make two and two."""
    num_tables = max(1, ceil(len(columns) / COLUMNS_PER_TABLE))
    size = ceil(len(columns) / num_tables)
    return [columns[i : i + size] for i in range(0, len(columns), size)]


def _table(board: Board, columns: Sequence[str]) -> str:
    header = [*board.paper.row_keys]
    for column in columns:
        header += [f"{column}, ours", "paper", "diff"]
    lines = [[*row, *(text for column in columns for text in _group(board, row, column))] for row in board.paper.rows]
    num_keys = len(board.paper.row_keys)
    return _pad(header, lines, right=[i >= num_keys or _is_numeric(lines, i) for i in range(len(header))])


def _group(board: Board, row: tuple[str, ...], column: str) -> tuple[str, str, str]:
    """Ours, the paper's and the difference at one place of the table."""
    decimals = board.paper.decimals(column)
    cell = board.cells.get((row, column))
    if cell is None:
        return NOTHING, board.paper.rows[row][column] or NOTHING, NOTHING
    return _ours(cell, decimals), write_value(cell.paper, decimals), write_difference(cell, decimals)


def _ours(cell: Cell, decimals: int) -> str:
    ours, status = write_ours(cell, decimals), write_status(cell)
    if cell.status != "done":
        return f"{ours} **{status}**".strip()
    return f"{ours or 'undefined'} ({status})"  # a relative gain over a baseline of 0 is undefined


def _is_numeric(lines: list[list[str]], index: int) -> bool:
    return all(line[index].replace(".", "", 1).isdecimal() for line in lines)


def _pad(header: list[str], lines: list[list[str]], right: list[bool]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    cells = [[text.replace("|", "\\|") for text in line] for line in [header, *lines]]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(header))]
    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]
    rows = [
        [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)]
        for line in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [rows[0], rule, *rows[1:]])


def _counts(board: Board) -> str:
    counts = ", ".join(f"{board.count(status)} {status}" for status in STATUSES)
    return f"{len(board.cells)} cells: {counts}."


def _unfilled(board: Board) -> list[str]:
    """The paper's columns that no entry and no derived column fills."""
    header = board.paper.header[len(board.paper.row_keys) :]
    unfilled = [column for column in header if column not in board.columns]
    return [f"Columns of the paper that this suite does not fill: {', '.join(unfilled)}."] if unfilled else []


def _failures(board: Board) -> list[str]:
    """One line per failed seed: a run that fills several columns is told once."""
    columns: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for cell in board.cells.values():
        for failure in cell.failures:
            reason = " ".join(failure.reason.split())
            key = cell.row, f"seed {failure.seed}: {reason}\n  See `{failure.log_path}`"
            columns.setdefault(key, []).append(cell.column)
    return _list("## Failed", (f"{' / '.join(row)}, {', '.join(c)}, {what}" for (row, what), c in columns.items()))


def _list(title: str, items: Iterable[str]) -> list[str]:
    text = "\n".join(f"- {item}" for item in items)
    return [f"{title}\n\n{text}"] if text else []
