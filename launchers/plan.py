"""Which experiments of a suite are new, running, interrupted, done or failed. Reads files only, starts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.errors import RecordError, SpecError, check_name, unknown_name
from suite.records import RunDirectory, Status
from suite.spec import Experiment, Resources, experiment_fields


@dataclass(frozen=True)
class Job:
    """An experiment, where its run is recorded, and what it may use."""

    experiment: Experiment
    directory: RunDirectory
    resources: Resources


@dataclass(frozen=True)
class PlannedRun:
    """A job and where it stands; ``problem`` says why it failed, where it did."""

    job: Job
    status: Status
    problem: str = ""


def select(experiments: Sequence[Experiment], only: Sequence[str]) -> list[Experiment]:
    """The experiments that match every KEY of ``only`` with one of its VALUEs.

    Raises:
        SpecError: a filter that is not KEY=VALUE, an unknown key, or a value that no experiment has.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, separator, value = text.partition("=")
        if not separator:
            raise SpecError(f"--only {text!r}: expected KEY=VALUE, such as model={experiments[0].model}")
        wanted.setdefault(key, []).append(value)
    selected = list(experiments)
    for key, values in wanted.items():
        check_name("key of --only", key, experiment_fields(experiments[0]))
        found = {str(experiment_fields(e)[key]) for e in experiments}
        for value in values:
            if not any(_same(value, other) for other in found):
                raise unknown_name(f"value of --only {key}", value, found)
        selected = [e for e in selected if any(_same(v, str(experiment_fields(e)[key])) for v in values)]
    if not selected:
        raise SpecError(f"no experiment matches --only {' '.join(only)} as a whole; loosen one of the filters")
    return selected


def make_plan(experiments: Sequence[Experiment], store: Path, resources: Resources) -> list[PlannedRun]:
    """Look up every experiment in the run store. A record that cannot be read counts as failed."""
    return [_look_up(Job(e, RunDirectory.of(store, e), resources)) for e in experiments]


def count(plan: Sequence[PlannedRun]) -> str:
    """One line: how many runs are new, running, interrupted, finished and failed."""
    counts = Counter(run.status for run in plan)
    names: dict[str, Status] = {"new": "new", "running": "running", "finished": "done", "failed": "failed"}
    parts = [f"{counts[status]} {name}" for name, status in names.items()]
    if counts["interrupted"]:
        parts.insert(1, f"{counts['interrupted']} to resume")
    return f"{len(plan)} runs: {', '.join(parts)}"


def _look_up(job: Job) -> PlannedRun:
    try:
        status = job.directory.status()
        failure = job.directory.read_failure() if status == "failed" else None
    except RecordError as error:
        return PlannedRun(job, "failed", str(error))
    return PlannedRun(job, status, failure.reason if failure else "")


def _same(text: str, value: str) -> bool:
    """Whether a command line's text means this value: 0.10 is 0.1."""
    try:
        return float(text) == float(value)
    except ValueError:
        return text == value
