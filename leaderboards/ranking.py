"""Cells -> the same cells with ranks: who is best among those that compete, as far as the seeds can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leaderboards.cells import Cell
from leaderboards.estimates import shared_ranks
from leaderboards.metrics import is_accuracy
from suite.profiles import Row
from suite.tables import RankedWithin, Table


def add_ranks(table: Table, cells: Mapping[tuple[Row, str], Cell]) -> dict[tuple[Row, str], Cell]:
    """Rank the accuracies that compete with each other and have an interval.

    A cell without an interval (one seed), one that failed or is void, and one without competitor has no rank.
    """
    ranked = dict(cells)
    groups: dict[tuple[str, ...], list[tuple[Row, str]]] = {}
    for key, cell in cells.items():
        if table.ranked != "none" and _competes(cell):
            groups.setdefault((cell.metric, *_group(table, cell)), []).append(key)
    for keys in groups.values():
        if len(keys) > 1:
            for key, rank in zip(keys, shared_ranks([_interval(cells[key]) for key in keys]), strict=True):
                ranked[key] = replace(cells[key], rank=rank)
    return ranked


def _group(table: Table, cell: Cell) -> tuple[str, ...]:
    """What the cells have in common that compete with this one, beside their metric."""
    if isinstance(table.ranked, RankedWithin):
        row = dict(zip(table.row_keys, cell.row, strict=True))
        return (cell.column, *(row[key] for key in table.ranked.row_keys))
    if table.ranked == "in_rows":
        return cell.row
    return (cell.column,) if table.ranked == "in_columns" else ()


def _competes(cell: Cell) -> bool:
    return cell.is_usable and cell.low is not None and is_accuracy(cell.metric)


def _interval(cell: Cell) -> tuple[float, float]:
    assert cell.low is not None
    assert cell.high is not None
    return cell.low, cell.high
