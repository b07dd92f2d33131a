"""How a number is written: with the decimals of the paper's column, the same in every form of the leaderboard."""

from __future__ import annotations

from leaderboards.aggregate import Cell

NOTHING = "-"


def write_value(value: float | None, decimals: int) -> str:
    """``value`` rounded to ``decimals``; a dash where there is none."""
    return NOTHING if value is None else f"{value:z.{decimals}f}"


def write_difference(cell: Cell, decimals: int) -> str:
    """Ours minus the paper's, with its sign."""
    return NOTHING if cell.difference is None else f"{cell.difference:+z.{decimals}f}"


def write_ours(cell: Cell, decimals: int) -> str:
    """Mean and half-width, without status: ``34.8 ± 0.4``; empty where there is no mean."""
    if cell.mean is None:
        return ""
    half_width = "" if cell.half_width is None else f" ± {cell.half_width:.{decimals}f}"
    return write_value(cell.mean, decimals) + half_width


def write_status(cell: Cell) -> str:
    """``n=3`` for a cell that is done, else what it lacks: ``partial 1/3``."""
    return f"n={cell.num_done}" if cell.status == "done" else f"{cell.status} {cell.num_done}/{cell.num_planned}"
