"""How a number is written: with the decimals of the paper's column, or with more where these would leave nothing."""

from __future__ import annotations

import math

from leaderboards.cells import Cell
from leaderboards.metrics import is_accuracy

NOTHING = "-"


def write_value(value: float | None, decimals: int) -> str:
    """``value`` rounded to ``decimals``; a dash where there is none."""
    return NOTHING if value is None else f"{value:z.{decimals}f}"


def write_signed(value: float | None, decimals: int) -> str:
    """A difference, with its sign; a dash where there is none."""
    return NOTHING if value is None else f"{value:+z.{decimals}f}"


def write_mean(cell: Cell, decimals: int) -> str:
    """The mean, with its sign where it is a change; a dash where there is none."""
    return (write_signed if cell.is_change else write_value)(cell.mean, decimals)


def readable_decimals(cell: Cell, decimals: int) -> int:
    """The paper's, or as many as two digits take where these would round a small model's size to 0."""
    mean = abs(cell.mean or 0.0)
    if not cell.metric or is_accuracy(cell.metric) or mean == 0 or round(mean, decimals) > 0:
        return decimals
    return 1 - math.floor(math.log10(mean))


def write_interval(cell: Cell, decimals: int) -> str:
    """`` ± 0.4`` where it is symmetric about the mean, else `` (34.1 to 35.4)``; empty where there is none, and for
    what no seed changes, such as a number of parameters."""
    if cell.low is None or cell.high is None or (cell.sd == 0 and not (is_accuracy(cell.metric) or cell.is_change)):
        return ""
    if cell.half_width is not None:
        return f" ± {cell.half_width:.{decimals}f}"
    return f" ({write_value(cell.low, decimals)} to {write_value(cell.high, decimals)})"


def write_ours(cell: Cell, decimals: int) -> str:
    """Mean and interval, without status: ``34.8 ± 0.4``; empty where there is no mean."""
    decimals = readable_decimals(cell, decimals)
    return "" if cell.mean is None else write_mean(cell, decimals) + write_interval(cell, decimals)


def write_status(cell: Cell) -> str:
    """``n=3`` for a cell that is done, else what it lacks: ``partial 1/3``, counted over all candidates of a search."""
    if cell.status == "done":
        return f"n={cell.num_done}"
    if cell.search is None:
        return f"{cell.status} {cell.num_done}/{cell.num_planned}"
    return f"{cell.status} {cell.search.num_done}/{cell.num_planned * cell.search.num_candidates}"
