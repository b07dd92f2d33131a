"""A grid -> its jobs -> where each run stands, as ``--status`` knows it, as JSON for the live page."""

from collections.abc import Sequence
from typing import Any

from launchers.command.grid_request import GridRequest
from launchers.command.options import make_resources
from launchers.core.plan import Job, make_jobs
from launchers.core.run_names import describe
from launchers.slurm.grid_costs import describe_costs, sum_costs
from launchers.slurm.grid_status import JobStatus, read_status
from launchers.slurm.status_table import duration, find_troubles, in_order, summarize
from suite.base.errors import SuiteError
from suite.base.files import mark_of
from suite.store.run_store import find_runs

Cell = tuple[str, float | None]  # what it says, and the number that it is sorted by
COLUMNS = ("Run", "State", "Node", "Step", "Loss", "Top-1 %", "Images/s", "ETA", "Requeued", "Note")
TEXTS = ("Run", "State", "Node", "Note")  # the others are numbers


class StateReader:
    """Reads the state of every run of a grid again and again; a finished one only when its result has changed."""

    def __init__(self, grid: GridRequest) -> None:
        self._grid, self._profile, self._store = grid, grid.profile, grid.options.runs
        self._done: dict[str, tuple[object, JobStatus]] = {}

    def read(self) -> dict[str, Any]:
        """The state of all runs, parents before those that need them."""
        try:
            return self._read(jobs_of(self._grid))
        except (SuiteError, OSError) as error:  # SLURM's controller restarts, a disk is gone: it is asked again
            return {"summary": "", "hours": "", "troubles": [str(error)], "runs": []}

    def _read(self, jobs: Sequence[Job]) -> dict[str, Any]:
        marks = {job.experiment.id: mark_of(job.directory.result_path) for job in jobs}
        cached = {name: found for name, (mark, found) in self._done.items() if mark == marks.get(name)}
        fresh = read_status([job for job in jobs if job.experiment.id not in cached], self._store)
        known = cached | {status.job.experiment.id: status for status in fresh}
        found = [known[job.experiment.id] for job in jobs]
        for status in fresh:
            if status.state == "done" and (mark := marks[status.job.experiment.id]) is not None:
                self._done[status.job.experiment.id] = (mark, status)
        names = describe([job.experiment for job in jobs])
        return {
            "summary": summarize(found),
            "hours": describe_costs(sum_costs(found, self._profile)),
            "troubles": find_troubles(self._store, found),
            "runs": [_view(status, names[status.job.experiment.id]) for status in in_order(found)],
        }


def jobs_of(grid: GridRequest) -> list[Job]:
    """The grid's jobs; with ``--seeds until`` of as many seeds as were begun."""
    options, profile, experiments = grid.options, grid.profile, grid.experiments
    if options.cluster == "slurm":
        from launchers.slurm import train_on_slurm as on_slurm  # imports submitit

        return on_slurm.jobs_of(grid)
    if options.until is not None:
        seeds = [seed for experiment in profile.experiments() for seed in find_runs(options.runs, experiment)]
        experiments = profile.experiments(range(max([len(options.seeds) - 1, *seeds]) + 1))
    return make_jobs(experiments, options.runs, make_resources(options, profile, options.ranks_per_node or 1, 1))


def _view(status: JobStatus, name: str) -> dict[str, Any]:
    metrics = status.metrics
    rate = metrics.get("images_per_s") if status.keeps_pace else None
    left = status.remaining_s if status.keeps_pace else None
    top1 = metrics.get("top1_percent") if status.top1_percent is None else status.top1_percent
    share = 1.0 if status.state == "done" else metrics.get("step", 0.0) / max(1.0, metrics.get("num_steps", 1.0))
    cells: list[Cell] = [
        (name, None),
        (status.state, None),
        (status.node, None),
        (status.steps, share),
        _number(metrics.get("loss"), ".4f"),
        _number(top1, ".2f"),
        _number(rate, ",.0f"),
        (duration(left), left),
        (str(status.num_requeues or ""), status.num_requeues),
        (status.words, None),
    ]
    return {"id": status.job.experiment.id, "state": status.state, "share": share, "cells": cells}


def _number(value: float | None, form: str) -> Cell:
    return ("", None) if value is None else (format(value, form), value)
