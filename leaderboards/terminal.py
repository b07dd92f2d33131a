"""Board -> a short table for the terminal: ours / the paper's at every place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leaderboards.aggregate import Board
from leaderboards.notation import NOTHING, write_status, write_value
from leaderboards.render import scale_title

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {"done": "", "partial": "yellow", "failed": "red", "missing": "dim"}
COLUMNS_BESIDE = 6  # with more, the paper's number goes below ours, so that 80 characters still hold a row


def print_summary(board: Board, markdown: Path) -> None:
    """Print the table, its scale, and where the whole leaderboard lies."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(_table(board), soft_wrap=False)
    console.print("Ours / the paper's. " + scale_title(board))
    console.print(f"Leaderboard: {markdown}")


def _table(board: Board) -> Table:
    """One line per row of the paper's table; what is not done is named and coloured."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for key in board.paper.row_keys:
        table.add_column(_wrappable(key), overflow="fold")
    for column in board.columns:
        table.add_column(_wrappable(column), justify="right", overflow="fold")
    for row in board.paper.rows:
        table.add_row(*row, *(_cell(board, row, column) for column in board.columns))
    return table


def _wrappable(name: str) -> str:
    return name.replace("_", " ")


def _cell(board: Board, row: tuple[str, ...], column: str) -> Text:
    from rich.text import Text

    decimals = board.paper.decimals(column)
    cell = board.cells.get((row, column))
    if cell is None:
        return Text(NOTHING, style="dim")
    ours, paper = write_value(cell.mean, decimals), write_value(cell.paper, decimals)
    separator = "/" if len(board.columns) <= COLUMNS_BESIDE else "/\n"
    text = Text.assemble((ours, STYLES[cell.status]), (separator + paper, "dim"))
    if cell.status != "done":
        text.append(f"\n{write_status(cell)}", style=STYLES[cell.status])
    return text
