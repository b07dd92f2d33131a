"""The experiments of a grid with the status of their runs. Reads files only, starts nothing."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.base.errors import SpecError, check_name, unknown_name
from suite.spec.experiment import Experiment, experiment_fields, with_ancestors
from suite.spec.profile import Profile
from suite.spec.resources import Resources
from suite.spec.suite import Suite
from suite.store.run_directory import RunDirectory
from suite.store.run_status import RunStatus, after_retry, find_run_status, read_run_status

LONGEST_S = 1e9  # that a time to go is shown as: rates may be damaged
Rows = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Job:
    """An experiment, where its run is recorded, and what it may use."""

    experiment: Experiment
    directory: RunDirectory
    resources: Resources


@dataclass(frozen=True)
class PlannedRun:
    """A job and its run's status; ``found`` is the same without regard to a planned retry."""

    job: Job
    status: RunStatus
    found: RunStatus

    @property
    def problem(self) -> str:
        """Why it failed, or why it cannot start; "" where it is finished or has a chance."""
        return "" if self.status.is_open or self.status.state == "done" else self.status.reason


def find_rows(suite: Suite, profile: Profile) -> Rows:
    """Name the board's rows that show each configuration: their keys and values, in the board's order."""
    found: Rows = defaultdict(list)
    for entry in profile.entries:
        for candidate in entry.candidates:
            found[candidate.configuration_id] += zip(suite.table(entry.table).row_keys, entry.row, strict=False)
    return found


def select(experiments: Sequence[Experiment], only: Sequence[str], rows: Rows | None = None) -> list[Experiment]:
    """Select the experiments that match every KEY of ``only`` with one of its VALUEs, and all that these depend on.

    A KEY is a field of an experiment or, where ``rows`` are given, the name of a column of the board's rows.

    Raises:
        SpecError: a filter that is not KEY=VALUE, an unknown key, or a value that no experiment has.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, separator, value = text.partition("=")
        if not separator:
            raise SpecError(f"--only {text!r}: expected KEY=VALUE, such as model={experiments[0].model}")
        wanted.setdefault(key, []).append(value)
    if not wanted:
        return with_ancestors(experiments)
    rows = rows or {}
    fields = [{(key, str(value)) for key, value in experiment_fields(e).items()} for e in experiments]
    named = [own.union(rows.get(e.configuration_id, ())) for e, own in zip(experiments, fields, strict=True)]
    known = set().union(*named)
    shown = dict.fromkeys(f"{key}={value}" for row in rows.values() for key, value in row if value)
    for key, values in wanted.items():
        check_name("key of --only", key, {other for other, _ in known})
        for value in values:
            valid = {found for other, found in known if other == key}
            if _meaning(value) not in map(_meaning, valid):
                hint = f" Rows of the board: {', '.join(shown)}." if shown else ""
                hint = " --seeds N plans seeds 0 to N-1." if key == "seed" else hint
                raise SpecError(f"{unknown_name(f'value of --only {key}', value, valid)}{hint}")
    selected = []
    for experiment, names in zip(experiments, named, strict=True):
        meant = {(key, _meaning(value)) for key, value in names}
        if all(any((key, _meaning(value)) in meant for value in values) for key, values in wanted.items()):
            selected.append(experiment)
    if not selected:
        raise SpecError(f"no experiment matches --only {' '.join(only)} as a whole; loosen one of the filters")
    return with_ancestors(selected)


def make_jobs(experiments: Sequence[Experiment], store: Path, resources: Resources) -> list[Job]:
    """Make the job of each experiment: its run is recorded in the store, and may use these resources."""
    return [Job(experiment, RunDirectory.of(store, experiment), resources) for experiment in experiments]


def make_plan(
    experiments: Sequence[Experiment], store: Path, resources: Resources, *, retry_failed: bool = False
) -> list[PlannedRun]:
    """Look up every experiment in the run store.

    Args:
        experiments: parents before those that need them, and with them.
        retry_failed: plan as if what failed, or is void, had not been tried; nothing is changed for that.
    """
    jobs = make_jobs(experiments, store, resources)
    plan: dict[str, PlannedRun] = {}
    for job, found in zip(jobs, read_run_statuses(jobs), strict=True):
        status = found
        if retry_failed:
            parents = {parent.id: plan[parent.id].status for parent in job.experiment.parents if parent.id in plan}
            status = after_retry(job.directory, found, parents)
        plan[job.experiment.id] = PlannedRun(job, status, found)
    return list(plan.values())


def read_run_statuses(jobs: Sequence[Job]) -> list[RunStatus]:
    """Judge where each run stands; parents come before those that need them, so that each is looked up once."""
    known: dict[str, RunStatus] = {}
    for job in jobs:
        for parent in job.experiment.parents:
            if parent.id not in known:
                known[parent.id] = find_run_status(job.directory.of_parent(parent), parent)
        parents = {parent.id: known[parent.id] for parent in job.experiment.parents}
        known[job.experiment.id] = read_run_status(job.directory, parents)
    return [known[job.experiment.id] for job in jobs]


def read_progress(run: RunDirectory) -> dict[str, float]:
    """Read a run's latest logged numbers by name; {} before there are ``step`` and ``num_steps``."""
    numbers = {name: value for name, value in run.last_metrics().items() if not isinstance(value, list)}
    if numbers.get("images_per_s", 1) <= 0:
        del numbers["images_per_s"]
    return numbers if {"step", "num_steps"} <= numbers.keys() else {}


def count(plan: Sequence[PlannedRun]) -> str:
    """Count, in one line, runs that are new, running, interrupted, finished and failed, and those that have to wait."""
    counts = Counter(run.status.state for run in plan)
    words = f"{len(plan)} runs: {counts['new'] + counts['waiting'] + counts['blocked']} new"
    words += f", {counts['interrupted']} to resume" if counts["interrupted"] else ""
    words += f", {counts['running']} running, {counts['done']} finished, {counts['failed'] + counts['void']} failed"
    words += f"; {counts['waiting']} wait for others of these" if counts["waiting"] else ""
    return words + (f"; {counts['blocked']} cannot start, since what they need has failed" if counts["blocked"] else "")


def _meaning(text: str) -> float | str:
    """Read a command line's text as a number where it is one: 0.10 is 0.1."""
    with contextlib.suppress(ValueError):
        return float(text)
    return text
