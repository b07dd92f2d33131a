"""Cells of a column -> ours, its interval and the paper's number as positions in the small plots of the cells.

All plots of a column share one scale. Away from the paper's scale a plot shows the cell's effect, and nothing of the
paper's.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from leaderboards.boards.board import Board
from leaderboards.boards.cells import Cell
from leaderboards.significance.estimates import Estimate
from suite.spec.profile import Row

WIDTH = 100.0
LIMIT = 8.0  # standard deviations, as in the figure of all claims
_EDGE = 5.0  # where the smallest and the largest number stand


@dataclass(frozen=True)
class Plot:
    """One plot, as numbers or as positions: ours, its interval, the paper's number and the zero of an effect;
    None where there is none."""

    ours: float | None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    zero: float | None = None


def plot_column(board: Board, column: str) -> dict[Row, Plot]:
    """The plots of one column by row; none where there is no number of ours, nor anything to see beside it."""
    effects = {row: effect.difference for (row, of), effect in board.effects.items() if of == column}
    plots = {row: plot_of(difference) for row, difference in effects.items() if difference}
    for (row, of), cell in board.cells.items():
        if of == column and not effects:  # a number, beside the paper's at its scale
            paper = cell.paper if board.is_at_papers_scale else None
            plots[row] = plot_of(cell, paper, 0.0 if cell.is_change else None)
    if not any(plot and sum(number is not None for number in astuple(plot)) > 1 for plot in plots.values()):
        return {}
    return scale(plots)


def plot_on_one_axis(estimate: Estimate) -> Plot | None:
    """The plot of an effect in standard deviations over its seeds, cut at ``LIMIT``, as all claims' effects are drawn;
    None without a deviation."""
    if estimate.mean is None or estimate.interval is None or not estimate.sd:
        return None
    ends = (estimate.mean, estimate.interval.low, estimate.interval.high)
    ours, low, high = (max(-LIMIT, min(LIMIT, end / estimate.sd)) for end in ends)
    return scale({(): Plot(ours, low, high, zero=0.0), ("from",): Plot(-LIMIT), ("to",): Plot(LIMIT)})[()]


def scale(plots: Mapping[Row, Plot | None]) -> dict[Row, Plot]:
    """Turn the numbers of several plots into positions from 0 to ``WIDTH`` on one scale; plots without ours are left
    out."""
    shown = {row: plot for row, plot in plots.items() if plot is not None and plot.ours is not None}
    numbers = [number for plot in shown.values() for number in astuple(plot) if number is not None]
    lowest, span = min(numbers, default=0.0), max(numbers, default=0.0) - min(numbers, default=0.0)

    def position(number: float | None) -> float | None:
        if number is None:
            return None
        share = (number - lowest) / span if span else 0.5
        return round(_EDGE + share * (WIDTH - 2 * _EDGE), 1)

    return {row: Plot(*map(position, astuple(plot))) for row, plot in shown.items()}


def plot_of(cell: Cell, paper: float | None = None, zero: float | None = 0.0) -> Plot | None:
    """Plot a cell's number with its interval; None where it may not be shown."""
    low, high = (cell.interval.low, cell.interval.high) if cell.interval else (None, None)
    return Plot(cell.mean, low, high, paper, zero) if cell.is_usable else None
