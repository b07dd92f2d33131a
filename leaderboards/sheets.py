"""Boards -> CSV: one file per table in the paper's own layout, and one long file with everything, a line per cell.

Neither holds a date or a machine's name, so that the same runs give the same bytes.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from leaderboards.aggregate import Board, SuiteBoard
from leaderboards.cells import Cell
from leaderboards.notation import write_value
from leaderboards.usable_runs import short_commit

LONG_COLUMNS = (
    "table", "row", "column", "metric", "n", "planned", "mean", "sd", "low", "high", "interval_method", "paper",
    "difference", "reached", "p_value", "rank", "status", "chosen", "device_hours", "images_per_s",
    "num_evaluations", "commits",
)  # fmt: skip


def render_csv(board: Board) -> str:
    """The paper's table with our means: its header, row order and decimals.

    A cell without a value is empty, and so is a failed or void one: the file has no place to say what is left out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(board.paper.header)
    for row in board.paper.rows:
        writer.writerow([*row, *(_value(board, board.cells.get((row, column))) for column in board.paper.columns)])
    return text.getvalue()


def render_long_csv(boards: SuiteBoard) -> str:
    """All cells of all tables, a line each; ``n`` and ``planned`` count the seeds of the candidate that is shown."""
    text = io.StringIO()
    writer = csv.DictWriter(text, LONG_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for board in boards.tables.values():
        for row in board.paper.rows:
            for column in board.columns:
                if (cell := board.cells.get((row, column))) is not None:
                    writer.writerow({"table": board.table.name, **_line(cell)})
    return text.getvalue()


def _value(board: Board, cell: Cell | None) -> str:
    if cell is None or not cell.is_usable:
        return ""
    return write_value(cell.mean, board.paper.decimals(cell.column))


def _line(cell: Cell) -> dict[str, Any]:
    numbers = {
        "mean": cell.mean,
        "sd": cell.sd,
        "low": cell.low,
        "high": cell.high,
        "paper": cell.paper,
        "difference": cell.difference,
        "p_value": cell.p_value,
        "device_hours": cell.device_hours,
        "images_per_s": cell.images_per_s,
    }
    shown = cell.experiment
    return {
        "row": " / ".join(cell.row),
        "column": cell.column,
        "metric": cell.metric,
        "n": cell.num_done,
        "planned": cell.num_planned,
        "interval_method": cell.interval_method,
        "reached": cell.reached,
        "rank": cell.rank,
        "status": cell.status,
        "chosen": f"{shown.model}-{shown.cell_id}" if cell.search and cell.num_done and shown else "",
        "num_evaluations": " ".join(map(str, cell.num_evaluations)),
        "commits": " ".join(short_commit(commit) for commit in cell.commits),
        **{name: "" if number is None else f"{number:.10g}" for name, number in numbers.items()},
    }
