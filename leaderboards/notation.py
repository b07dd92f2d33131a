"""How a number is written: with the decimals of the paper's column, the same in every form of the leaderboard."""

from __future__ import annotations

from leaderboards.cells import Cell

NOTHING = "-"


def write_value(value: float | None, decimals: int) -> str:
    """``value`` rounded to ``decimals``; a dash where there is none."""
    return NOTHING if value is None else f"{value:z.{decimals}f}"


def write_signed(value: float | None, decimals: int) -> str:
    """A difference, with its sign; a dash where there is none."""
    return NOTHING if value is None else f"{value:+z.{decimals}f}"


def write_interval(cell: Cell, decimals: int) -> str:
    """`` ± 0.4`` where it is symmetric about the mean, else `` (34.1 to 35.4)``; empty where there is none."""
    if cell.low is None or cell.high is None:
        return ""
    if cell.half_width is not None:
        return f" ± {cell.half_width:.{decimals}f}"
    return f" ({write_value(cell.low, decimals)} to {write_value(cell.high, decimals)})"


def write_ours(cell: Cell, decimals: int) -> str:
    """Mean and interval, without status: ``34.8 ± 0.4``; empty where there is no mean."""
    return "" if cell.mean is None else write_value(cell.mean, decimals) + write_interval(cell, decimals)


def write_status(cell: Cell) -> str:
    """``n=3`` for a cell that is done, else what it lacks: ``partial 1/3``, counted over all candidates of a search."""
    if cell.status == "done":
        return f"n={cell.num_done}"
    if cell.search is None:
        return f"{cell.status} {cell.num_done}/{cell.num_planned}"
    return f"{cell.status} {cell.search.num_done}/{cell.num_planned * cell.search.num_candidates}"
