"""A grid -> its jobs -> how far each run is, as ``--status`` knows it, and how the grid ended, as JSON for its page."""

import contextlib
import functools
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchers.command.grid_request import GridRequest, begun_seeds
from launchers.command.options import make_resources
from launchers.core.plan import Job, make_jobs
from launchers.core.run_names import describe
from launchers.core.time_left import clock, find_time_left
from launchers.slurm.grid_costs import describe_costs, sum_costs
from launchers.slurm.grid_status import JobStatus, read_status
from launchers.slurm.status_table import duration, find_troubles, in_order, summarize
from suite.base.errors import SuiteError
from suite.base.files import mark_of
from suite.store.run_directory import RunDirectory
from suite.store.run_status import name_state

Cell = tuple[str, float | None]  # what it says, and the number that it is sorted by
COLUMNS = ("Run", "State", "Node", "Step", "Loss", "Top-1 %", "Images/s", "ETA", "Requeued", "Note")
TEXTS = ("Run", "State", "Node", "Note")  # the others are numbers
KILLED = "The grid was killed"
_CURVES = ("loss", "top1_percent")
_WIDTH, _HEIGHT, _MOST_POINTS = 100, 14, 100  # of a curve


class StateReader:
    """Reads the state of every run of a grid again and again; a finished one only when its result has changed.

    Args:
        grid: grid that is looked at.
        command: command line that goes on with it.
    """

    def __init__(self, grid: GridRequest, command: str = "") -> None:
        self._grid, self._profile, self._store = grid, grid.profile, grid.options.runs
        self._command, self._began_s = command, time.monotonic()
        self._done: dict[str, tuple[object, JobStatus]] = {}
        self._end: tuple[str, float] | None = None

    def end(self, how: str) -> None:
        """Note that the grid has ended now, and how; "" where it came to its own end."""
        self._end = how, time.monotonic() - self._began_s

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
        is_over = sum(status.state == "done" or status.has_failed for status in found)
        paces = [(status.job, status.metrics, status.keeps_pace) for status in found]
        left = find_time_left(paces, len(found) - is_over)
        return {
            "summary": summarize(found) + ("" if left is None else f", about {clock(left)} to go"),
            "share": sum(1.0 if status.has_failed else _share(status) for status in found) / max(1, len(found)),
            "end": self._describe_end(found, *self._end) if self._end else "",
            "is_whole": all(status.state == "done" for status in found),
            "hours": describe_costs(sum_costs(found, self._profile)),
            "troubles": find_troubles(self._store, found),
            "runs": [_view(status, names[status.job.experiment.id]) for status in in_order(found)],
        }

    def _describe_end(self, found: Sequence[JobStatus], how: str, seconds: float) -> str:
        """``60 of 60 done in 7:12``, or what failed, and the command that goes on."""
        counts = Counter("failed" if one.has_failed else "go on" if one.goes_on else one.state for one in found)
        text = f"{how and how + ': '}{counts['done']} of {len(found)} done in {clock(seconds)}"
        text += "".join(f", {counts[name]} {name}" for name in ("failed", "go on") if counts[name])
        retry = " --retry-failed" if counts["failed"] and "--retry-failed" not in self._command else ""
        return text if counts["done"] == len(found) else f"{text}. To go on: {self._command}{retry}"


def jobs_of(grid: GridRequest) -> list[Job]:
    """The grid's jobs, on SLURM or here."""
    options = grid.options
    if options.cluster == "slurm":
        from launchers.slurm import train_on_slurm as on_slurm  # imports submitit

        return on_slurm.jobs_of(grid)
    experiments = grid.experiments
    if options.until is not None:  # of which more begin while the page is open
        experiments = grid.profile.experiments(begun_seeds(options, grid.profile))
    return make_jobs(experiments, options.runs, make_resources(options, grid.profile, options.ranks_per_node or 1, 1))


def _share(status: JobStatus) -> float:
    """The share of a run's steps that is done."""
    metrics = status.metrics
    return 1.0 if status.state == "done" else metrics.get("step", 0.0) / max(1.0, metrics.get("num_steps", 1.0))


def _view(status: JobStatus, name: str) -> dict[str, Any]:
    metrics, run, share = status.metrics, status.job.directory, _share(status)
    rate = metrics.get("images_per_s") if status.keeps_pace else None
    left = status.remaining_s if status.keeps_pace else None
    top1 = metrics.get("top1_percent") if status.top1_percent is None else status.top1_percent
    cells: list[Cell] = [
        (name, None),
        (name_state(status.state), None),
        (status.node, None),
        (status.steps, share),
        _number(metrics.get("loss"), ".4f"),
        _number(top1, ".2f"),
        _number(rate, ",.0f"),
        (duration(left), left),
        (str(status.num_requeues or ""), status.num_requeues),
        (status.words, None),
    ]
    curves = _draw_curves(run.path, mark_of(run.metrics_path)) if metrics else ()
    view = {"id": status.job.experiment.id, "state": status.state, "is_silent": bool(status.stall)}
    return view | {"share": share, "cells": cells, "curves": curves}


@functools.lru_cache(4096)
def _draw_curves(path: Path, mark: object) -> list[str]:
    """Loss and accuracy by step as paths of an SVG as wide as the whole run; none where the metrics cannot be read."""
    with contextlib.suppress(SuiteError):  # as the run itself will say
        records = RunDirectory(path).read_metrics()
        return [
            _draw([(one["step"] / one.get("num_steps", math.inf), one[key]) for one in records if key in one])
            for key in _CURVES
        ]
    return []


def _draw(points: Sequence[tuple[float, float]]) -> str:
    """A path through some of the points, from the lowest to the highest of them; "" where there are too few."""
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    if len(points) < 2:
        return ""
    low, high = (of(value for _, value in points) for of in (min, max))
    scale = (_HEIGHT - 2) / ((high - low) or 1.0)
    return "M" + "L".join(f"{x * _WIDTH:.1f} {_HEIGHT - 1 - (value - low) * scale:.1f}" for x, value in points)


def _number(value: float | None, form: str) -> Cell:
    return ("", None) if value is None else (format(value, form), value)
