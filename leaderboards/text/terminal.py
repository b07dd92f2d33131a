"""Leaderboard -> short tables for the terminal: ours / the paper's at every place that the profile fills."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.text.escaping import spell_controls
from leaderboards.text.notation import (
    NOTHING,
    readable_decimals,
    scale_title,
    write_headline,
    write_mean,
    write_power,
    write_status,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {"done": "", "partial": "yellow", "failed": "red", "void": "red", "missing": "dim"}
COLUMNS_BESIDE = 6  # with more, the paper's number goes below ours, so that 80 characters still hold a row
WIDEST_KEY = 20  # what is longer is folded
GAP, EDGES = 2, 2  # characters between columns, and around the table


def print_summary(leaderboard: Leaderboard, beside: Sequence[str], markdown: Path) -> None:
    """Print the tables, their scale, the headline, what stands beside it, and where the whole leaderboard lies.

    Rows of which nothing was trained are counted below their table, not shown: the leaderboard has them.

    Args:
        leaderboard: a suite's at one scale.
        beside: lines about the headline: what is published of it, custom models, verdicts on claims.
        markdown: the whole leaderboard's file.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for board in leaderboard.tables.values():
        if len(leaderboard.tables) > 1:
            console.print(f"\n{board.table.item}")
        for columns in _split(board, console.width):
            console.print(_table(board, columns, console.width), soft_wrap=False)
        if untrained := _count_untrained(board):
            console.print(f"{untrained} more row{'s' * (untrained > 1)}, of which nothing is trained yet.")
    console.print(
        ("Ours / the paper's. " if _has_paper(leaderboard) else "") + scale_title(leaderboard), soft_wrap=False
    )
    for line in filter(None, (f"{write_headline(leaderboard)}.", write_power(leaderboard), *beside)):
        console.print(spell_controls(line), soft_wrap=False)
    console.print(spell_controls(f"Leaderboard: {markdown}"))


def _has_paper(leaderboard: Leaderboard) -> bool:
    return any(board.has_paper for board in leaderboard.tables.values())


def _split(board: Board, width: int) -> list[list[str]]:
    """The columns in as few tables as the terminal's width holds whole."""
    keys = EDGES + sum(GAP + _key_width(board, i) for i in range(len(board.paper.row_keys)))
    blocks: list[list[str]] = []
    left = 0
    for column in board.columns:
        needed = GAP + _width(board, column)
        if not blocks or needed > left:
            blocks.append([])
            left = width - keys
        blocks[-1].append(column)
        left -= needed
    return blocks


def _key_width(board: Board, index: int) -> int:
    """That of its longest value, which may be folded, and of a word of its name, which may not."""
    values = min(WIDEST_KEY, max((len(row[index]) for row in _rows(board)), default=0))
    return max(_word(board.paper.row_keys[index]), values)


def _width(board: Board, column: str) -> int:
    return max(_word(column), *(_widest_line(board, row, column) for row in _rows(board)))


def _rows(board: Board) -> list[tuple[str, ...]]:
    """Those with at least one cell that has a run; where none has, all that the profile fills."""
    filled = _filled(board)
    return [row for row in filled if _is_begun(board, row)] or filled


def _count_untrained(board: Board) -> int:
    return len(_filled(board)) - len(_rows(board))


def _filled(board: Board) -> list[tuple[str, ...]]:
    """Those with at least one place that the profile fills."""
    return [row for row in board.paper.rows if any((row, column) in board.cells for column in board.columns)]


def _is_begun(board: Board, row: tuple[str, ...]) -> bool:
    cells = [board.cells.get((row, column)) for column in board.columns]
    return any(cell is not None and cell.status != "missing" for cell in cells)


def _word(name: str) -> int:
    return max(map(len, _wrappable(name).split(" ")))


def _widest_line(board: Board, row: tuple[str, ...], column: str) -> int:
    return max(map(len, _cell(board, row, column).plain.split("\n")))


def _table(board: Board, columns: list[str], width: int) -> Table:
    """One line per row of the paper's table; what is not done is named and coloured.

    Every width is set here: where a table is too wide, rich itself would cut its last columns off.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    keys = board.paper.row_keys
    names = [_wrappable(name) for name in (*keys, *columns)]
    widths = [_key_width(board, i) for i in range(len(keys))] + [_width(board, column) for column in columns]
    for i, (name, size) in enumerate(zip(names, _spread(names, widths, width), strict=True)):
        table.add_column(name, justify="left" if i < len(keys) else "right", overflow="fold", width=size)
    for row in _rows(board):
        table.add_row(*row, *(_cell(board, row, column) for column in columns))
    return table


def _spread(names: list[str], widths: list[int], width: int) -> list[int]:
    """The least widths, from the left made wide enough for the whole name where there is room."""
    spare = width - EDGES - GAP * (len(names) - 1) - sum(widths)
    spread = []
    for name, least in zip(names, widths, strict=True):
        more = max(0, len(name) - least)
        more = more if more <= spare else 0
        spare -= more
        spread.append(least + more)
    return spread


def _wrappable(name: str) -> str:
    return name.replace("_", " ")


def _cell(board: Board, row: tuple[str, ...], column: str) -> Text:
    from rich.text import Text

    cell = board.cells.get((row, column))
    if cell is None:
        return Text(NOTHING, style="dim")
    decimals = readable_decimals(cell, board.paper.decimals(column))
    text = Text(write_mean(cell, decimals), style=STYLES[cell.status])
    if board.has_paper and column not in board.table.custom_columns:
        text.append(_paper(board, cell), style="dim")
    if cell.status != "done":
        text.append(f"\n{write_status(cell)}", style=STYLES[cell.status])
    return text


def _paper(board: Board, cell: Cell) -> str:
    separator = "/" if len(board.columns) <= COLUMNS_BESIDE else "/\n"
    return separator + (board.paper.rows[cell.row][cell.column] or NOTHING)  # as the paper prints it
