"""Board -> a table as a template shows it: every text written, every plot placed, each cell with an address."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from leaderboards.boards.board import Board
from leaderboards.report.pictures.plots import Plot, plot_column
from leaderboards.report.runs_behind import RunReader, RunsOfCell
from leaderboards.text.labels import label_names, list_columns
from leaderboards.text.notation import NOTHING, format_comparison, format_ours, format_ranks, format_status
from suite.spec.profile import Row


@dataclass(frozen=True)
class CellView:
    """One cell: ``sort`` is the number that its column is sorted by, ``runs`` the number of its ``RunsOfCell``."""

    anchor: str
    ours: str
    status: str
    state: str  # of the runs, as a class of the style sheet
    ranks: str
    paper: str
    compared: str  # with the paper's number or a baseline
    verdict: str
    last: str
    plot: Plot | None
    sort: float | None
    runs: int | None


@dataclass(frozen=True)
class TableView:
    """A table; ``small_print`` says what stands below ours, ``mark`` what comparison; ``unfilled`` is left out."""

    name: str
    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    labels: Mapping[str, str]  # of keys and columns, for people
    rows: tuple[tuple[Row, tuple[CellView | None, ...]], ...]  # keys and cells
    small_print: str
    mark: str
    unfilled: str


def anchor(table: str, row: Row, column: str) -> str:
    """The address of a cell within its page."""
    return re.sub(r"[^\w.+-]+", "-", "--".join((table, *row, column)), flags=re.ASCII)


def view_table(board: Board, reader: RunReader, runs: dict[RunsOfCell, int]) -> TableView:
    """Write a table. ``runs`` numbers each ``RunsOfCell`` of the page; those of this table are added to it."""
    labels, plots = label_names(board), {column: plot_column(board, column) for column in board.columns}
    return TableView(
        name=board.table.name,
        title=board.table.item,
        keys=board.paper.row_keys,
        columns=tuple(board.columns),
        labels=labels,
        rows=tuple(
            (row, tuple(_view_cell(board, row, column, plots[column], reader, runs) for column in board.columns))
            for row in board.paper.rows
        ),
        small_print=_name_small_print(board),
        mark="difference" if board.is_at_papers_scale else "effect",
        unfilled=list_columns(board, (one for one in board.paper.columns if one not in board.columns)),
    )


def _view_cell(
    board: Board, row: Row, column: str, plots: Mapping[Row, Plot], reader: RunReader, runs: dict[RunsOfCell, int]
) -> CellView | None:
    cell = board.cells.get((row, column))
    if cell is None:
        return None
    decimals = board.paper.decimals(column)
    reasons = [failure.reason for failure in cell.coverage.failures if cell.status == "void"]
    return CellView(
        anchor=anchor(board.table.name, row, column),
        ours=format_ours(cell, decimals) or ("undefined" if cell.status == "done" else NOTHING),
        status=": ".join([format_status(cell), *reasons[:1]]),
        state=cell.status,
        ranks=format_ranks(cell),
        paper=board.paper.rows[row][column] if board.has_paper else "",
        compared="" if (compared := format_comparison(board, cell)) == NOTHING else compared,
        verdict=cell.comparison.verdict or "",
        last="" if cell.last_top1_percent is None else f"{cell.last_top1_percent:.{decimals}f}",
        plot=plots.get(row),
        sort=cell.mean,
        runs=runs.setdefault(reader.of_cell(cell), len(runs)) if cell.provenance.experiments else None,
    )


def _name_small_print(board: Board) -> str:
    """The names of the numbers below ours."""
    papers = ["the paper's number"] if board.has_paper else []
    if board.is_at_papers_scale:
        papers += ["ours minus the paper's"] if board.has_paper else []
    elif board.effects:
        papers += ["the effect against the baseline" + (", the paper's in brackets" if board.has_paper else "")]
    return " and ".join(papers)
