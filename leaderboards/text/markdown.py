"""Leaderboard -> Markdown that reads well in a terminal too, with notes on the runs behind its numbers.

It holds no date and no machine's name, so that the same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import STATUSES, Cell
from leaderboards.text.custom_models import COMPARISON, write_comparisons
from leaderboards.text.escaping import escape_code, escape_markdown
from leaderboards.text.legend import explain
from leaderboards.text.notation import (
    NOTHING,
    pad,
    scale_title,
    section,
    shown_decimals,
    write_compared,
    write_headline,
    write_ours,
    write_power,
    write_ranks,
    write_signed,
    write_status,
)
from leaderboards.text.notes import Note, find_notes
from suite.spec.suite import ChangeFrom

COLUMNS_PER_TABLE = 3  # with ours, paper and diff for each, more would not fit a terminal's width
OWN_COLUMNS_PER_TABLE = 6  # of a table that the paper does not print

CUSTOM_MODELS = """\
Models beside the papers', each trained by the recipe and on the data of the row's first model, in whose place it
stands; a recipe that was changed is named. A challenger is ranked by itself among those that this model competes with.
The difference is to each of the papers' models of the row on the same data: better or worse where p < 0.05 (Welch's t,
by Holm's method over a challenger's comparisons by one metric in a table)."""


def render_markdown(leaderboard: Leaderboard) -> str:
    """The whole leaderboard for a reader: scale first, then the tables, what failed, and the footnotes."""
    suite = leaderboard.suite
    blocks = [
        f"# {suite.name}: ours beside {suite.paper}, {suite.item}",
        suite.question,
        _scale_note(leaderboard),
        "\n".join(filter(None, [f"Headline: {write_headline(leaderboard)}.", write_power(leaderboard)])),
        _counts(leaderboard),
        *(block for board in leaderboard.tables.values() for block in _table_section(board)),
        *_custom_models(leaderboard),
        *explain(leaderboard),
        *render_notes(leaderboard),
        *section("## Notes", suite.footnotes),
    ]
    return "\n\n".join(blocks) + "\n"


def _scale_note(leaderboard: Leaderboard) -> str:
    lines = [f"**{scale_title(leaderboard)}**"]
    if leaderboard.profile.scale_note:
        lines.append(f"{leaderboard.profile.scale_note.rstrip('.')}.")
    return "\n".join(f"> {line}" for line in lines)


def _counts(leaderboard: Leaderboard) -> str:
    counts = ", ".join(f"{leaderboard.count(status)} {status}" for status in STATUSES)
    return f"{leaderboard.num_cells} cells: {counts}."


def _custom_models(leaderboard: Leaderboard) -> list[str]:
    """Who stands beside the papers' models, and how they compare with each of them."""
    if not leaderboard.suite.custom_models:
        return []
    lines = write_comparisons(leaderboard)
    table = [pad(list(COMPARISON), lines, right=[False] * 4 + [True] * 2 + [False])] if lines else []
    entered = (escape_markdown(custom_model.describe()) for custom_model in leaderboard.suite.custom_models)
    told = section("## Challengers", entered)
    return [*told, CUSTOM_MODELS, *table]


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
        if column in board.table.custom_columns:
            header.append(column)
            continue
        header += [f"{column}, ours", *(["paper"] if board.has_paper else [])]
        header += _compared_by(board, column)
        header += ["verdict"] if _is_judged(board, column) else []
    lines = [
        [*map(escape_markdown, row), *(text for column in columns for text in _group(board, row, column))]
        for row in board.paper.rows
    ]
    num_keys = len(board.paper.row_keys)
    return pad(header, lines, right=[i >= num_keys or _is_numeric(lines, i) for i in range(len(header))])


def _group(board: Board, row: tuple[str, ...], column: str) -> list[str]:
    """Ours, the paper's and how they compare at one place of the table, and the verdict."""
    decimals = board.paper.decimals(column)
    cell = board.cells.get((row, column))
    texts = [NOTHING if cell is None else _ours(cell, decimals)]
    if board.has_paper and column not in board.table.custom_columns:
        texts.append(board.paper.rows[row][column] or NOTHING)
    if _compared_by(board, column) == ["diff"]:
        texts.append(NOTHING if cell is None else write_signed(cell.difference, decimals))
    elif _compared_by(board, column):
        texts.append(write_compared(board.effects.get((row, column))))
    if _is_judged(board, column):
        texts.append((cell and cell.comparison.verdict) or NOTHING)
    return texts


def _compared_by(board: Board, column: str) -> list[str]:
    """With the paper's number at its scale, else with a baseline where there is one; by nothing in a table of ours."""
    if column in board.table.custom_columns:
        return []
    if board.is_at_papers_scale:
        return ["diff"] if board.has_paper else []
    return ["effect"] if board.has_paper and any(of == column for _, of in board.effects) else []


def _is_judged(board: Board, column: str) -> bool:
    return any(cell.comparison.verdict for cell in board.cells.values() if cell.column == column)


def _ours(cell: Cell, decimals: int) -> str:
    ours, status, ranks = write_ours(cell, decimals), write_status(cell), write_ranks(cell)
    if cell.status != "done":
        return f"{ours} **{status}** {ranks}".strip()
    last = _write_last(cell, decimals)
    return f"{ours or 'undefined'} ({status}{last}) {ranks}".strip()  # such as a relative gain over a baseline of 0


def _write_last(cell: Cell, decimals: int) -> str:
    """The accuracy after the last epoch, beside the best of all epochs."""
    last = cell.last_top1_percent
    return "" if last is None else f", last epoch {last:.{shown_decimals(cell, decimals)}f}"


def _is_numeric(lines: list[list[str]], index: int) -> bool:
    return all(line[index].replace(".", "", 1).isdecimal() for line in lines)


# -- what was chosen, what failed, what waits, what is mixed


def render_notes(leaderboard: Leaderboard) -> list[str]:
    """The Markdown sections, without those that have nothing to say."""
    return [
        block for title, notes in find_notes(leaderboard).items() for block in section(f"## {title}", map(_note, notes))
    ]


def _note(note: Note) -> str:
    place = f"{escape_markdown(note.place)}: " if note.place else ""
    see = f"\n  See `{escape_code(note.see)}`" if note.see else ""
    return f"{place}{escape_markdown(note.text)}{see}"
