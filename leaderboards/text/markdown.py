"""Leaderboard -> Markdown that is legible in a terminal too. It has no date: the same runs give the same bytes."""

from collections.abc import Sequence
from itertools import chain
from math import ceil

from leaderboards.boards.board import ENTRY, Board, Leaderboard
from leaderboards.boards.cells import STATUSES, Cell
from leaderboards.text import notation
from leaderboards.text.custom_models import COMPARISON, write_comparisons
from leaderboards.text.escaping import escape_code, escape_markdown
from leaderboards.text.labels import label_names, list_columns
from leaderboards.text.legend import explain
from leaderboards.text.notes import Note, find_notes
from suite.spec.profile import Row
from suite.spec.suite import ChangeFrom
from suite.store.run_status import name_state

COLUMNS_PER_TABLE = 3  # with ours, paper and diff for each, more would not fit a terminal's width
OWN_COLUMNS_PER_TABLE = 6  # of a table that the paper does not print

CUSTOM_MODELS = """\
Models beside the papers'. Each is trained by the recipe and on the data of the row's first model; a recipe that was
changed is named. A custom model is ranked by itself, in that model's place among its competitors: its rank stands in
brackets, and no other rank counts it. The difference is to
each of the papers' models of the row on the same data: better or worse where p < 0.05 (Student's t by seed, by
Benjamini and Hochberg's method over a custom model's comparisons by one metric in a table)."""


ENTRIES = """\
Runs that others have trained and entered (`entries/`). Reported: as it arrived. Checked: its records are sound.
Recomputed: those named have trained a sample of its runs again, with the same numbers."""


def render_markdown(leaderboard: Leaderboard) -> str:
    """The whole leaderboard: its scale, the tables, what failed, and the footnotes."""
    suite, note = leaderboard.suite, leaderboard.profile.scale_note
    counts = ", ".join(f"{leaderboard.count(status)} {name_state(status)}" for status in STATUSES)
    headline = [f"Headline: {notation.make_headline(leaderboard).told}.", notation.format_power(leaderboard)]
    notes = (notation.section(f"## {title}", map(_note, of)) for title, of in find_notes(leaderboard).items())
    blocks = [
        f"# {suite.name}: ours beside {suite.paper}, {suite.item}",
        suite.question,
        f"> **{notation.scale_title(leaderboard)}**" + (f"\n> {note.rstrip('.')}." if note else ""),
        "\n".join(filter(None, headline)),
        f"{leaderboard.num_cells} cells: {counts}.",
        *(block for board in leaderboard.tables.values() for block in _table_section(board)),
        *_custom_models(leaderboard),
        *_entries(leaderboard),
        *explain(leaderboard),
        *chain.from_iterable(notes),
        *notation.section("## Notes", suite.footnotes),
    ]
    return "\n\n".join(blocks) + "\n"


def _custom_models(leaderboard: Leaderboard) -> list[str]:
    if not leaderboard.suite.custom_models:
        return []
    lines = write_comparisons(leaderboard)
    table = [notation.pad(list(COMPARISON), lines, right=[False] * 4 + [True] * 2 + [False])] if lines else []
    entered = (escape_markdown(model.describe()) for model in leaderboard.suite.custom_models)
    return [*notation.section("## Custom models", entered), CUSTOM_MODELS, *table]


def _entries(leaderboard: Leaderboard) -> list[str]:
    if not leaderboard.entries:
        return []
    lines = [[escape_markdown(word) for word in line] for line in leaderboard.entries]
    return ["## Entries", ENTRIES, notation.pad(list(ENTRY), lines, right=[False] * 4 + [True, False])]


def _table_section(board: Board) -> list[str]:
    """The table in blocks that fit a page's width, and the columns that it leaves out."""
    title = f"## {board.table.item}"
    if not board.cells:
        return [title, "This profile fills no place of this table."]
    blocks = [title, *(_table(board, columns) for columns in _split(board))]
    unfilled = [column for column in board.paper.columns if column not in board.columns]
    if unfilled:
        blocks.append(f"Columns that this profile does not fill: {list_columns(board, unfilled)}.")
    return blocks


def _split(board: Board) -> list[Sequence[str]]:
    """Split the columns evenly into as few blocks as fit: four make two and two. A change stays beside its column."""
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
    parts = [(column, part) for column in columns for part in _parts(board, column)]
    labels, own = label_names(board), board.table.custom_columns
    titles = [
        part if part != "ours" else column if column in own else f"{labels[column]}: ours" for column, part in parts
    ]
    header = [*(labels[key] for key in board.paper.row_keys), *titles]
    lines = [[*map(escape_markdown, row), *(_text(board, row, *of) for of in parts)] for row in board.paper.rows]
    num_keys = len(board.paper.row_keys)
    return notation.pad(header, lines, right=[i >= num_keys or _is_numeric(lines, i) for i in range(len(header))])


def _parts(board: Board, column: str) -> list[str]:
    """The parts that stand side by side in a column: a difference to the paper only at its scale, else the effect."""
    if column in board.table.custom_columns:
        return ["ours"]
    parts = ["ours", "paper"] if board.has_paper else ["ours"]
    if board.has_paper and board.is_at_papers_scale:
        parts.append("diff")
    elif board.has_paper and any(of == column for _, of in board.effects):
        parts.append("effect")
    is_judged = any(cell.comparison.verdict for cell in board.cells.values() if cell.column == column)
    return [*parts, "verdict"] if is_judged else parts


def _text(board: Board, row: Row, column: str, part: str) -> str:
    if part == "paper":
        return board.paper.rows[row][column] or notation.NOTHING
    cell, decimals = board.cells.get((row, column)), board.paper.decimals(column)
    if cell is None:
        return notation.NOTHING
    if part == "verdict":
        return cell.comparison.verdict or notation.NOTHING
    return _ours(cell, decimals) if part == "ours" else notation.format_comparison(board, cell)


def _ours(cell: Cell, decimals: int) -> str:
    ours, ranks = notation.format_ours(cell, decimals), notation.format_ranks(cell)
    status = notation.format_status(cell)
    if cell.status != "done":
        return f"{ours} **{status}** {ranks}".strip()
    last = cell.last_top1_percent
    after = "" if last is None else f", last epoch {last:.{notation.shown_decimals(cell, decimals)}f}"
    return f"{ours or 'undefined'} ({status}{after}) {ranks}".strip()  # such as a relative gain over a baseline of 0


def _is_numeric(lines: list[list[str]], index: int) -> bool:
    return all(line[index].replace(".", "", 1).isdecimal() for line in lines)


def _note(note: Note) -> str:
    place = f"{escape_markdown(note.place)}: " if note.place else ""
    see = f"\n  See `{escape_code(note.see)}`" if note.see else ""
    return f"{place}{escape_markdown(note.text)}{see}"
