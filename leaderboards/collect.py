"""Run store -> what is known about every cell of a profile. Reads files only and never decides what they mean.

Every result that exists is read, whatever its seed: to leave one out would be to choose. One that no longer holds, as
the protocol has changed, is no result of this experiment: it is told as void, or those of its numbers are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leaderboards.metrics import read_metric
from suite.attempts import device_hours, read_attempts
from suite.errors import RecordError
from suite.protocol_changes import void_metrics, why_void
from suite.records import Result, RunDirectory, find_runs
from suite.spec import Experiment, with_ancestors
from suite.tables import Profile, RelativeTo, Table

ALWAYS_READ = ("top1_percent", "images_per_s", "num_evaluations")  # decides a search; is told of every cell


@dataclass(frozen=True)
class SeedFailure:
    """A run that has no usable result. ``log_path`` is the file to open next, "" where there is none."""

    seed: int
    reason: str
    log_path: str
    state: Literal["failed", "void"] = "failed"


@dataclass
class CellRuns:
    """The runs of one experiment that differ only in their seed; what is asked of their results, by seed.

    The ``Result`` objects are let go at once: thousands of them alive would keep the garbage collector busy for as
    long as the reading itself.
    """

    values: dict[int, dict[str, float]] = field(default_factory=dict)
    void_metrics: dict[int, dict[str, SeedFailure]] = field(default_factory=dict)  # left out of ``values``
    failures: tuple[SeedFailure, ...] = ()
    num_found: int = 0  # run directories, finished or not
    unfinished: set[int] = field(default_factory=set)  # with a run directory, but neither result nor failure
    device_hours: dict[int, float] = field(default_factory=dict)  # of all attempts, whatever came of them
    commits: dict[int, str] = field(default_factory=dict)
    loaders: dict[int, str] = field(default_factory=dict)
    num_corrupt_images: dict[int, int] = field(default_factory=dict)  # where there were any
    parents: dict[int, str] = field(default_factory=dict)  # ids of the runs that these took over


@dataclass(frozen=True)
class Collection:
    """All runs of a profile, also those that others depend on, by ``Experiment.cell_id``."""

    cells: dict[str, CellRuns]
    num_planned: int  # seeds per cell


def collect(profile: Profile, store: Path, num_seeds: int | None = None, tables: Iterable[Table] = ()) -> Collection:
    """Read the runs of every entry; an experiment that stands in several entries is read once.

    Args:
        profile: the entries to look for.
        store: the run store that the grid wrote.
        num_seeds: seeds planned per cell; None: as many as the fullest cell of an entry has on disk, at least 1,
            so that uneven cells show as partial.
        tables: whose derived columns may need metrics that no entry names.

    Raises:
        RecordError: if two folders stand for the same seed, or a cell's folder cannot be listed.
    """
    candidates = [candidate for entry in profile.entries for candidate in entry.candidates]
    experiments = {experiment.cell_id: experiment for experiment in with_ancestors(candidates)}
    metrics = {*ALWAYS_READ, *(metric for entry in profile.entries for metric in entry.columns.values())}
    metrics |= {column.metric for table in tables for column in table.derived if isinstance(column, RelativeTo)}
    cells = {cell_id: read_cell(store, experiment, sorted(metrics)) for cell_id, experiment in experiments.items()}
    num_planned = num_seeds or max([1, *(cells[candidate.cell_id].num_found for candidate in candidates)])
    return Collection(cells=cells, num_planned=num_planned)


def read_cell(store: Path, experiment: Experiment, metrics: Iterable[str]) -> CellRuns:
    """The metrics and failures of one cell. A file that cannot be read is a failure of its seed alone."""
    try:
        runs = find_runs(store, experiment)
    except OSError as error:
        raise RecordError(f"cannot list {error.filename}: {error.strerror}. Move it out of the run store.") from error
    cell = CellRuns(num_found=len(runs))
    failures = []
    for seed, run in runs.items():
        outcome = _read_run(run, seed)
        if isinstance(outcome, Result):
            reason = why_void(outcome)
            if not reason:
                _keep(cell, outcome, metrics, run)
                continue
            cell.device_hours[seed] = outcome.device_hours
            reason = f"void: {reason}. Run the grid again with --retry-failed: it trains it again"
            outcome = SeedFailure(seed, reason, str(run.result_path), "void")
        else:
            cell.device_hours[seed] = _hours(run)
        if outcome is None:
            cell.unfinished.add(seed)
        else:
            failures.append(outcome)
    cell.failures = tuple(failures)
    return cell


def _keep(cell: CellRuns, result: Result, metrics: Iterable[str], run: RunDirectory) -> None:
    """What is shown of a result, so that the rest of it can be let go."""
    seed = result.experiment.seed
    void = void_metrics(result)
    cell.void_metrics[seed] = {metric: _void(metric, void[metric], result, run) for metric in metrics if metric in void}
    found = {metric: read_metric(result, metric) for metric in metrics if metric not in void}
    cell.values[seed] = {metric: value for metric, value in found.items() if value is not None}
    cell.device_hours[seed] = result.device_hours
    cell.commits[seed] = result.commit
    cell.loaders[seed] = result.loader
    if result.num_corrupt_images:
        cell.num_corrupt_images[seed] = result.num_corrupt_images
    if result.parent:
        cell.parents[seed] = result.parent


def _hours(run: RunDirectory) -> float:
    """What an unfinished run has cost; nothing that is known where the account cannot be read."""
    try:
        return device_hours(read_attempts(run))
    except (OSError, UnicodeDecodeError):
        return 0.0


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


def _void(metric: str, reason: str, result: Result, run: RunDirectory) -> SeedFailure:
    """That one number of a result no longer holds, though the others do."""
    told = f"void: {metric} was measured under protocol {result.protocol_version}, since when {reason}"
    cure = f"The run's other numbers hold; delete {run.path} and run the grid again for this one"
    return SeedFailure(result.experiment.seed, f"{told}. {cure}", str(run.result_path), "void")
