"""Leaderboard -> short tables for the terminal: ours / the paper's at every place that the profile fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.text import notation
from leaderboards.text.escaping import spell_controls
from leaderboards.text.labels import label_names

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {"done": "", "partial": "yellow", "failed": "red", "void": "red", "missing": "dim"}
MAX_COLUMNS_SIDE_BY_SIDE = 6  # with more, the paper's number goes below ours, so that 80 characters still hold a row
WIDEST_KEY = 20  # what is longer is folded
GAP, EDGES = 2, 2  # characters between columns, and around the table


def print_summary(leaderboard: Leaderboard, messages: Sequence[str], page: Path) -> None:
    """Print the tables and their scale; last the question with its answer, and where the page of it all lies.

    Rows without a run are counted below their table.

    Args:
        leaderboard: the leaderboard of one suite at one scale.
        messages: lines above the answer: the published one, custom models, verdicts on claims.
        page: the HTML file of the whole leaderboard.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for board in leaderboard.tables.values():
        if len(leaderboard.tables) > 1:
            console.print(f"\n{board.table.item}")
        labels = label_names(board)
        for columns in _split(board, labels, console.width):
            console.print(_table(board, labels, columns, console.width), soft_wrap=False)
        if untrained := len(_filled(board)) - len(_rows(board)):
            console.print(f"{untrained} more row{'s' * (untrained > 1)}, of which nothing is trained yet.")
    has_paper = any(board.has_paper for board in leaderboard.tables.values())
    console.print(("Ours / the paper's. " if has_paper else "") + notation.scale_title(leaderboard), soft_wrap=False)
    answer = (leaderboard.suite.question, f"{notation.make_headline(leaderboard).told}.")
    for line in filter(None, (notation.format_power(leaderboard), *messages, *answer)):
        console.print(spell_controls(line), soft_wrap=False)
    console.print(spell_controls(f"Leaderboard: {page}"))


def _split(board: Board, labels: Mapping[str, str], width: int) -> list[list[str]]:
    """The columns in as few tables as the terminal's width holds whole."""
    keys = EDGES + sum(GAP + _key_width(board, labels, i) for i in range(len(board.paper.row_keys)))
    blocks: list[list[str]] = []
    left = 0
    for column in board.columns:
        needed = GAP + _width(board, labels, column)
        if not blocks or needed > left:
            blocks.append([])
            left = width - keys
        blocks[-1].append(column)
        left -= needed
    return blocks


def _key_width(board: Board, labels: Mapping[str, str], index: int) -> int:
    """The width of a key's longest value, which may be folded, and of a word of its name, which may not."""
    values = min(WIDEST_KEY, max((len(row[index]) for row in _rows(board)), default=0))
    return max(_word(labels[board.paper.row_keys[index]]), values)


def _width(board: Board, labels: Mapping[str, str], column: str) -> int:
    texts = [_cell(board, row, column).plain for row in _rows(board)]
    return max(_word(labels[column]), *(len(line) for text in texts for line in text.split("\n")))


def _rows(board: Board) -> list[tuple[str, ...]]:
    """The rows with at least one cell that has a run; where none has, all that the profile fills."""
    begun = {row for (row, _), cell in board.cells.items() if cell.status != "missing"}
    return [row for row in _filled(board) if row in begun] or _filled(board)


def _filled(board: Board) -> list[tuple[str, ...]]:
    """The rows in which the profile fills at least one place."""
    return [row for row in board.paper.rows if any((row, column) in board.cells for column in board.columns)]


def _word(name: str) -> int:
    return max(map(len, name.split(" ")))


def _table(board: Board, labels: Mapping[str, str], columns: list[str], width: int) -> Table:
    """One line per row of the paper's table; what is not done is named and coloured.

    Every width is set here: where a table is too wide, rich itself would cut its last columns off.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    keys = board.paper.row_keys
    names = [labels[name] for name in (*keys, *columns)]
    widths = [_key_width(board, labels, i) for i in range(len(keys))]
    widths += [_width(board, labels, column) for column in columns]
    for i, (name, size) in enumerate(zip(names, _spread(names, widths, width), strict=True)):
        table.add_column(name, justify="left" if i < len(keys) else "right", overflow="fold", width=size)
    for row in _rows(board):
        table.add_row(*row, *(_cell(board, row, column) for column in columns))
    return table


def _spread(names: list[str], widths: list[int], width: int) -> list[int]:
    """The least widths, made wide enough for whole names from the left on, where there is room."""
    spare = width - EDGES - GAP * (len(names) - 1) - sum(widths)
    spread = []
    for name, least in zip(names, widths, strict=True):
        more = max(0, len(name) - least)
        more = more if more <= spare else 0
        spare -= more
        spread.append(least + more)
    return spread


def _cell(board: Board, row: tuple[str, ...], column: str) -> Text:
    from rich.text import Text

    cell = board.cells.get((row, column))
    if cell is None:
        return Text(notation.NOTHING, style="dim")
    decimals = notation.readable_decimals(cell, board.paper.decimals(column))
    text = Text(notation.format_mean(cell, decimals), style=STYLES[cell.status])
    if board.has_paper and column not in board.table.custom_columns:
        separator = "/" if len(board.columns) <= MAX_COLUMNS_SIDE_BY_SIDE else "/\n"
        printed = board.paper.rows[row][column] or notation.NOTHING
        text.append(separator + printed, style="dim")
    if cell.status != "done":
        text.append(f"\n{notation.format_status(cell)}", style=STYLES[cell.status])
    return text
