"""Run store -> what is known about every cell of a profile. Reads files only and never decides what they mean.

Every result that exists is read, whatever its seed: to leave one out would be to choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from leaderboards.metrics import read_metric
from suite.errors import RecordError
from suite.records import Result, RunDirectory, find_runs
from suite.spec import Experiment, Profile


@dataclass(frozen=True)
class SeedFailure:
    """A run that has no usable result. ``log_path`` is the file to open next."""

    seed: int
    reason: str
    log_path: str


@dataclass(frozen=True)
class CellRuns:
    """The runs of one experiment that differ only in their seed.

    ``values`` holds the asked metrics by seed. The ``Result`` objects are let go at once: thousands of them
    alive would keep the garbage collector busy for as long as the reading itself.
    """

    values: dict[int, dict[str, float]]
    failures: tuple[SeedFailure, ...]
    num_found: int  # run directories, finished or not


@dataclass(frozen=True)
class Collection:
    """All runs of a profile, by ``Experiment.cell_id``."""

    cells: dict[str, CellRuns]
    num_planned: int  # seeds per cell


def collect(profile: Profile, store: Path, num_seeds: int | None = None) -> Collection:
    """Read the runs of every entry; an experiment that stands in several entries is read once.

    Args:
        profile: the entries to look for.
        store: the run store that the grid wrote.
        num_seeds: seeds planned per cell; None: as many as the fullest cell has on disk, at least 1,
            so that uneven cells show as partial.
    """
    experiments = {entry.experiment.cell_id: entry.experiment for entry in profile.entries}
    metrics = sorted({metric for entry in profile.entries for metric in entry.columns.values()})
    cells = {cell_id: read_cell(store, experiment, metrics) for cell_id, experiment in experiments.items()}
    num_planned = num_seeds or max([1, *(cell.num_found for cell in cells.values())])
    return Collection(cells=cells, num_planned=num_planned)


def read_cell(store: Path, experiment: Experiment, metrics: Iterable[str]) -> CellRuns:
    """The metrics and failures of one cell. A file that cannot be read is a failure of its seed alone."""
    runs = find_runs(store, experiment)
    values: dict[int, dict[str, float]] = {}
    failures = []
    for seed, run in runs.items():
        outcome = _read_run(run, seed)
        if isinstance(outcome, Result):
            values[seed] = {metric: read_metric(outcome, metric) for metric in metrics}
        elif outcome is not None:
            failures.append(outcome)
    return CellRuns(values=values, failures=tuple(failures), num_found=len(runs))


def _read_run(run: RunDirectory, seed: int) -> Result | SeedFailure | None:
    """The run's result, or why there will be none, or None while it is unfinished."""
    try:
        result = run.read_result()
        if result is not None:
            return result
        failure = run.read_failure()
    except RecordError as error:
        path = run.result_path if run.result_path.exists() else run.failure_path
        return SeedFailure(seed, str(error), str(path))
    if failure is None:
        return None
    return SeedFailure(seed, failure.reason, failure.log_path or str(run.log_path))
