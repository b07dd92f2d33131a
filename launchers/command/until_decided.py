"""``--seeds until=H``: train seed after seed until the suite's headline is known to H points."""

from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from launchers.command.options import GridOptions
from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.significance.power import is_decided, widened
from leaderboards.significance.rules import FIRST_LOOK
from leaderboards.text.notation import format_signed
from suite.base.errors import SpecError
from suite.papers import get_suite


def train_until(options: GridOptions, train: Callable[[GridOptions], int], console: Console) -> int:
    """Train five seeds a configuration, then one more each, until the headline is decided or ``--max-seeds`` are done.

    The same command goes on where the last one ended: seeds that are done are not trained again. With ``--detach`` it
    submits the seeds that come next, and returns. The exit status is that of the first training that failed, else 0.
    ``train`` trains a grid of a fixed number of seeds, and returns its exit status.

    Raises:
        SpecError: the profile leaves the headline empty, or the store has later seeds than those that come next.
    """
    cell, goal, num_seeds = _headline(options), options.until or 0.0, FIRST_LOOK
    if cell is not None and (known := len(cell.estimate.values)) >= FIRST_LOOK:
        num_seeds = min(known if is_decided(cell.estimate, goal) else known + 1, options.max_seeds)
    if cell is not None and (last := max(cell.estimate.values, default=0)) >= num_seeds:
        raise SpecError(
            f"--seeds until: the store has runs of seed {last}; expected seeds from 0 to {num_seeds - 1}. "
            f"Name another --runs, or train all by --seeds {last + 1}, then call this again with --max-seeds {last + 1}"
        )
    while True:
        status = train(replace(options, seeds=range(num_seeds), until=None))
        if status or options.detach:
            return status
        cell = _headline(options)
        console.print(_report(cell, options, num_seeds))
        if cell is None or is_decided(cell.estimate, goal) or num_seeds >= options.max_seeds:
            return status
        num_seeds += 1


def _headline(options: GridOptions) -> Cell | None:
    suite = get_suite(options.suite or "")
    cell = make_leaderboard(suite, options.profile_name, options.runs).headline if options.runs.is_dir() else None
    places = (suite.headline.better, suite.headline.baseline)
    if not all(suite.find_entry(suite.profile(options.profile_name), place) for place in places):
        raise SpecError(f"--seeds until: profile {options.profile_name} leaves a place of the headline empty")
    return cell


def _report(cell: Cell | None, options: GridOptions, num_seeds: int) -> str:
    """``5 seeds: +2.03 ± 0.71 points (widened); goal ± 0.5: one more seed``."""
    reach = None if cell is None else widened(cell.estimate)
    if cell is None or reach is None:
        return f"{num_seeds} seeds: the headline has no interval"
    mean = format_signed(cell.mean, 2)
    reached = f"{num_seeds} seeds: {mean} ± {reach.half_width:.2f} points (widened for the looks before)"
    if is_decided(cell.estimate, options.until or 0.0):
        return f"{reached}; within the goal of ± {options.until:g}"
    more = "one more seed" if num_seeds < options.max_seeds else "not reached with --max-seeds"
    return f"{reached}; goal ± {options.until:g}: {more}"
