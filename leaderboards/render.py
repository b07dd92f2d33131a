"""SuiteBoard -> Markdown that reads well in a terminal too. It holds no date and no machine's name, so that the same
runs give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from leaderboards.aggregate import STATUSES, Board, SuiteBoard
from leaderboards.cells import Cell
from leaderboards.metrics import is_accuracy
from leaderboards.notation import NOTHING, write_interval, write_ours, write_signed, write_status
from leaderboards.notes import render_notes, section
from suite.tables import ChangeFrom, Ranked, RankedWithin

COLUMNS_PER_TABLE = 3  # with ours, paper and diff for each, more would not fit a terminal's width
OWN_COLUMNS_PER_TABLE = 6  # of a table that the paper does not print

LEGEND = """\
Ours is the mean over n seeds with its 95 % confidence interval: none from one seed, nor for what no seed changes;
Student's t up to nine seeds, written ± half its width; from ten on the BCa bootstrap, written (low to high). Decimals
are the paper's, or more where these would leave only zeros. Diff is ours minus the paper's, before rounding.
What is not complete is marked in the table: partial 2/3 (two of three runs are done), failed (a seed has no usable
result; the mean is of the others, and the CSV leaves the place empty), void (the same, for a result that a change of
the protocol has voided), missing (no seed is done). A dash: no number, or a place that this profile does not fill."""
RANKS = {
    "in_columns": "#1 is the best of a column. Cells of a column share a rank where their intervals overlap, also\n"
    "through a chain of others between them.",
    "in_rows": "#1 is the best of a row. Cells of a row that show the same metric share a rank where their intervals\n"
    "overlap, also through a chain of others between them.",
    "in_table": "#1 is the best of the whole table. Its cells that show the same metric share a rank where their\n"
    "intervals overlap, also through a chain of others between them.",
}
RANKS_WITHIN = """\
#1 is the best of a column among the rows of one {keys}. These share a rank where their intervals overlap, also
through a chain of others between them."""
REACHED = """\
Reached: "no" where a one-sided t-test of the seeds against the paper's number finds ours significantly below it
(p < 0.05), else "yes", which means *not significantly below*."""


def render_markdown(boards: SuiteBoard) -> str:
    """The whole leaderboard for a reader: scale first, then the tables, what failed, and the footnotes."""
    suite = boards.suite
    blocks = [
        f"# {suite.name}: ours beside {suite.paper}, {suite.item}",
        suite.question,
        _scale_note(boards),
        f"Headline: {write_headline(boards)}.",
        _counts(boards),
        *(block for board in boards.tables.values() for block in _table_section(board)),
        *_legend(boards),
        *render_notes(boards),
        *section("## Notes", suite.footnotes),
    ]
    return "\n\n".join(blocks) + "\n"


def scale_title(boards: SuiteBoard) -> str:
    """One line that says whether the numbers may be compared with the paper's."""
    if not boards.profile.scale_note:
        return f"Profile {boards.profile_name}: the paper's own scale."
    return f"Profile {boards.profile_name}: another scale than the paper's, not comparable with its numbers."


def write_headline(boards: SuiteBoard) -> str:
    """``ConViT over DeiT: +2.0 ± 1.9 points (paper: +13.0)``."""
    text, cell = boards.suite.headline.text, boards.headline
    if cell is None:
        return f"{text}: not in this profile"
    paper = "" if cell.paper is None else f" (paper: {write_signed(cell.paper, difference_decimals(cell))})"
    return f"{text}: {write_difference(cell)}{paper}"


def write_difference(cell: Cell) -> str:
    """A headline's: ``+2.0 ± 1.9 points``, in points of percent where these are accuracies. Without an interval it
    says of how many seeds it is."""
    if cell.mean is None:
        return write_status(cell)
    decimals = difference_decimals(cell)
    unit = " points" if is_accuracy(cell.metric) else ""
    status = "" if cell.status == "done" and cell.low is not None else f", {write_status(cell)}"
    return write_signed(cell.mean, decimals) + write_interval(cell, decimals) + unit + status


def difference_decimals(cell: Cell) -> int:
    return 1 if is_accuracy(cell.metric) else 2


def _scale_note(boards: SuiteBoard) -> str:
    lines = [f"**{scale_title(boards)}**"]
    if boards.profile.scale_note:
        lines.append(f"{boards.profile.scale_note.rstrip('.')}.")
    if boards.profile.scale_note:
        lines.append(
            "The differences below say how far apart the two scales are, not how well the paper is reproduced."
        )
    return "\n".join(f"> {line}" for line in lines)


def _counts(boards: SuiteBoard) -> str:
    counts = ", ".join(f"{boards.count(status)} {status}" for status in STATUSES)
    return f"{boards.num_cells} cells: {counts}."


def _legend(boards: SuiteBoard) -> list[str]:
    said = [LEGEND, *_rank_legend(boards)]
    return [*said, REACHED] if any(cell.reached for b in boards.tables.values() for cell in b.cells.values()) else said


def _rank_legend(boards: SuiteBoard) -> list[str]:
    """What a rank means, with the tables' names where it does not mean the same in all."""
    items: dict[str, list[str]] = {}
    for board in boards.tables.values():
        if any(cell.rank is not None for cell in board.cells.values()):
            items.setdefault(_explain(board.table.ranked), []).append(board.table.item)
    return [f"{'; '.join(of)}: {said}" if len(items) > 1 else said for said, of in items.items()]


def _explain(ranked: Ranked) -> str:
    if isinstance(ranked, RankedWithin):
        return RANKS_WITHIN.format(keys=" and ".join(ranked.row_keys))
    return RANKS[ranked]


def _table_section(board: Board) -> list[str]:
    """The table in as many blocks as fit a page's width, and what it leaves out."""
    title = f"## {board.table.item}"
    if not board.cells:
        return [title, "This profile fills no place of this table."]
    blocks = [title, *(_table(board, columns) for columns in _split(board))]
    unfilled = [column for column in board.paper.columns if column not in board.columns]
    if unfilled:
        blocks.append(f"Columns that this profile does not fill: {', '.join(unfilled)}.")
    return blocks


def _split(board: Board) -> list[Sequence[str]]:
    """Evenly into as few blocks as fit: four columns make two and two. A change stays beside what has changed."""
    changes = {derived.column for derived in board.table.derived if isinstance(derived, ChangeFrom)}
    units: list[list[str]] = []
    for column in board.columns:
        if column in changes and units:
            units[-1].append(column)
        else:
            units.append([column])
    most = COLUMNS_PER_TABLE if board.has_paper else OWN_COLUMNS_PER_TABLE
    num_blocks = ceil(len(units) / max(1, most // max(map(len, units))))
    size = ceil(len(units) / num_blocks)
    return [[column for unit in units[i : i + size] for column in unit] for i in range(0, len(units), size)]


def _table(board: Board, columns: Sequence[str]) -> str:
    header = [*board.paper.row_keys]
    for column in columns:
        header += [f"{column}, ours", *(["paper", "diff"] if board.has_paper else [])]
        header += ["reached"] if _is_tested(board, column) else []
    lines = [[*row, *(text for column in columns for text in _group(board, row, column))] for row in board.paper.rows]
    num_keys = len(board.paper.row_keys)
    return pad(header, lines, right=[i >= num_keys or _is_numeric(lines, i) for i in range(len(header))])


def _group(board: Board, row: tuple[str, ...], column: str) -> list[str]:
    """Ours, the paper's and the difference at one place of the table, and whether the paper's was reached."""
    decimals = board.paper.decimals(column)
    cell = board.cells.get((row, column))
    texts = [NOTHING if cell is None else _ours(cell, decimals)]
    if board.has_paper:
        texts.append(board.paper.rows[row][column] or NOTHING)
        texts.append(NOTHING if cell is None else write_signed(cell.difference, decimals))
    if _is_tested(board, column):
        texts.append((cell and cell.reached) or NOTHING)
    return texts


def _is_tested(board: Board, column: str) -> bool:
    return any(cell.reached for cell in board.cells.values() if cell.column == column)


def _ours(cell: Cell, decimals: int) -> str:
    ours, status = write_ours(cell, decimals), write_status(cell)
    rank = "" if cell.rank is None else f" #{cell.rank}"
    if cell.status != "done":
        return f"{ours} **{status}**{rank}".strip()
    return f"{ours or 'undefined'} ({status}){rank}"  # such as a relative gain over a baseline of 0


def _is_numeric(lines: list[list[str]], index: int) -> bool:
    return all(line[index].replace(".", "", 1).isdecimal() for line in lines)


def pad(header: list[str], lines: list[list[str]], right: list[bool]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    cells = [[text.replace("|", "\\|") for text in line] for line in [header, *lines]]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(header))]
    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]
    rows = [
        [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)]
        for line in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [rows[0], rule, *rows[1:]])
