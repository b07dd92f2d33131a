"""Cells -> the same cells with ranks: who is best in a column or a row, as far as the seeds can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leaderboards.cells import Cell
from leaderboards.estimates import shared_ranks
from leaderboards.metrics import is_accuracy
from suite.tables import Row, Table


def add_ranks(table: Table, cells: Mapping[tuple[Row, str], Cell]) -> dict[tuple[Row, str], Cell]:
    """Rank the cells that compete with each other and have an interval: accuracies of a column, or of a row.

    A cell without an interval (one seed), one that failed or is void, and one without competitor has no rank.
    """
    ranked = dict(cells)
    groups: dict[tuple[object, str], list[tuple[Row, str]]] = {}
    for key, cell in cells.items():
        if table.ranked != "none" and _competes(cell):
            group = cell.column if table.ranked == "in_columns" else cell.row
            groups.setdefault((group, cell.metric), []).append(key)
    for keys in groups.values():
        if len(keys) > 1:
            for key, rank in zip(keys, shared_ranks([_interval(cells[key]) for key in keys]), strict=True):
                ranked[key] = replace(cells[key], rank=rank)
    return ranked


def _competes(cell: Cell) -> bool:
    return cell.is_usable and cell.low is not None and is_accuracy(cell.metric)


def _interval(cell: Cell) -> tuple[float, float]:
    assert cell.low is not None
    assert cell.high is not None
    return cell.low, cell.high
