"""Which experiments of a suite are new, running, interrupted, done or failed, and which wait for others.

Reads files only, starts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suite.errors import RecordError, SpecError, check_name, unknown_name
from suite.records import RunDirectory, Status
from suite.spec import Experiment, Resources, experiment_fields, with_ancestors


@dataclass(frozen=True)
class Job:
    """An experiment, where its run is recorded, and what it may use."""

    experiment: Experiment
    directory: RunDirectory
    resources: Resources


@dataclass(frozen=True)
class PlannedRun:
    """A job and where it stands.

    ``problem`` says why it failed, or why it cannot start; ``waits_for`` are its parents that have no result yet.
    """

    job: Job
    status: Status
    problem: str = ""
    waits_for: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether anything is left to do that can be done."""
        return self.status != "done" and not self.problem


def select(experiments: Sequence[Experiment], only: Sequence[str]) -> list[Experiment]:
    """The experiments that match every KEY of ``only`` with one of its VALUEs, and all that these depend on.

    Raises:
        SpecError: a filter that is not KEY=VALUE, an unknown key, or a value that no experiment has.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, separator, value = text.partition("=")
        if not separator:
            raise SpecError(f"--only {text!r}: expected KEY=VALUE, such as model={experiments[0].model}")
        wanted.setdefault(key, []).append(value)
    fields = [experiment_fields(experiment) for experiment in experiments] if wanted else [{} for _ in experiments]
    for key, values in wanted.items():
        check_name("key of --only", key, fields[0])
        found = {str(one[key]) for one in fields}
        for value in values:
            if not any(_same(value, other) for other in found):
                raise unknown_name(f"value of --only {key}", value, found)
    selected = [
        experiment
        for experiment, one in zip(experiments, fields, strict=True)
        if all(any(_same(value, str(one[key])) for value in values) for key, values in wanted.items())
    ]
    if not selected:
        raise SpecError(f"no experiment matches --only {' '.join(only)} as a whole; loosen one of the filters")
    return with_ancestors(selected)


def make_plan(
    experiments: Sequence[Experiment], store: Path, resources: Resources, *, retry_failed: bool = False
) -> list[PlannedRun]:
    """Look up every experiment in the run store. A record that cannot be read counts as failed.

    Args:
        experiments: parents before those that need them.
        retry_failed: plan as if what failed, or is void, had not been tried; nothing is changed for that.
    """
    plan: dict[str, PlannedRun] = {}
    for experiment in experiments:
        found = look_up(Job(experiment, RunDirectory.of(store, experiment), resources))
        if retry_failed and found.status == "failed":
            found = PlannedRun(found.job, "interrupted" if found.job.directory.metrics_path.exists() else "new")
        plan[experiment.id] = _beside_parents(found, plan)
    return list(plan.values())


def look_up(job: Job) -> PlannedRun:
    """Where a run stands, by its own files; with a void result it has failed, which ``--retry-failed`` cures."""
    try:
        status = job.directory.status()
        if status == "done" and (reason := job.directory.why_void()):
            return PlannedRun(job, "failed", f"its result is void: {reason}")
        failure = job.directory.read_failure() if status == "failed" else None
    except RecordError as error:
        return PlannedRun(job, "failed", str(error))
    return PlannedRun(job, status, failure.reason if failure else "")


def needs_failed(parent: Experiment) -> str:
    """Why a run cannot start."""
    return f"needs {parent.id}, which failed"


def _beside_parents(run: PlannedRun, plan: Mapping[str, PlannedRun]) -> PlannedRun:
    """What the runs that this one depends on mean for it."""
    parents = [plan[parent.id] for parent in run.job.experiment.parents if parent.id in plan]
    if not parents or run.status in ("done", "failed", "running"):
        return run
    failed = next((parent for parent in parents if parent.problem), None)
    return replace(
        run,
        problem=needs_failed(failed.job.experiment) if failed else "",
        waits_for=tuple(parent.job.experiment.id for parent in parents if parent.status != "done"),
    )


def count(plan: Sequence[PlannedRun]) -> str:
    """One line: how many runs are new, running, interrupted, finished and failed, and how many of them have to wait."""
    counts = Counter(run.status for run in plan)
    names: dict[str, Status] = {"new": "new", "running": "running", "finished": "done", "failed": "failed"}
    parts = [f"{counts[status]} {name}" for name, status in names.items()]
    if counts["interrupted"]:
        parts.insert(1, f"{counts['interrupted']} to resume")
    waiting = sum(bool(run.waits_for) and not run.problem for run in plan)
    stuck = sum(bool(run.waits_for) and bool(run.problem) for run in plan)
    words = f"; {waiting} wait for others of these" if waiting else ""
    words += f"; {stuck} cannot start, since what they need has failed" if stuck else ""
    return f"{len(plan)} runs: {', '.join(parts)}{words}"


def _same(text: str, value: str) -> bool:
    """Whether a command line's text means this value: 0.10 is 0.1."""
    try:
        return float(text) == float(value)
    except ValueError:
        return text == value
