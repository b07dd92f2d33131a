"""The experiments of a grid beside where their runs stand.

Reads files only, starts nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.errors import SpecError, check_name, in_order, unknown_name
from suite.profiles import Profile
from suite.records import RunDirectory
from suite.spec import Experiment, Resources, experiment_fields, with_ancestors
from suite.standing import Standing, after_retry, stand, stand_alone
from suite.tables import Suite


@dataclass(frozen=True)
class Job:
    """An experiment, where its run is recorded, and what it may use."""

    experiment: Experiment
    directory: RunDirectory
    resources: Resources


@dataclass(frozen=True)
class PlannedRun:
    """A job and where it stands; ``found`` is the same without regard to a planned retry."""

    job: Job
    standing: Standing
    found: Standing

    @property
    def problem(self) -> str:
        """Why it failed, or why it cannot start; "" where it is finished or has a chance."""
        return "" if self.standing.is_open or self.standing.state == "done" else self.standing.reason


Rows = Mapping[str, Mapping[str, set[str]]]


def find_rows(suite: Suite, profile: Profile) -> Rows:
    """What the board calls the rows that show an arm: by arm, the values of each key of a row."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entry in profile.entries:
        for key, value in zip(suite.table(entry.table).row_keys, entry.row, strict=True):
            for candidate in entry.candidates:
                found[candidate.arm_id][key] |= {value} - {""}
    return found


def select(experiments: Sequence[Experiment], only: Sequence[str], rows: Rows | None = None) -> list[Experiment]:
    """Select the experiments that match every KEY of ``only`` with one of its VALUEs, and all that these depend on.

    Args:
        experiments: those to select from.
        only: texts KEY=VALUE, each of a field of an experiment or of a row of the board.
        rows: names of the board's rows; None: it has none.

    Raises:
        SpecError: a filter that is not KEY=VALUE, an unknown key, or a value that no experiment has.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, separator, value = text.partition("=")
        if not separator:
            raise SpecError(f"--only {text!r}: expected KEY=VALUE, such as model={experiments[0].model}")
        wanted.setdefault(key, []).append(value)
    names = [_names(experiment, rows or {}) for experiment in experiments] if wanted else [{} for _ in experiments]
    valid: dict[str, set[str]] = defaultdict(set)
    for one in names:
        for key, called in one.items():
            valid[key] |= called
    for key, values in wanted.items():
        check_name("key of --only", key, valid)
        for value in values:
            if not any(_same(value, other) for other in valid[key]):
                raise _unknown_value(key, value, valid, rows or {})
    selected = [
        experiment
        for experiment, one in zip(experiments, names, strict=True)
        if all(
            any(_same(value, other) for value in values for other in one.get(key, ())) for key, values in wanted.items()
        )
    ]
    if not selected:
        raise SpecError(f"no experiment matches --only {' '.join(only)} as a whole; loosen one of the filters")
    return with_ancestors(selected)


def _names(experiment: Experiment, rows: Rows) -> dict[str, set[str]]:
    """What ``--only`` may call an experiment: by its fields, and by the rows of the board that show it."""
    fields = {key: {str(value)} for key, value in experiment_fields(experiment).items()}
    of_rows = rows.get(experiment.arm_id, {})
    return {key: fields.get(key, set()) | set(of_rows.get(key, ())) for key in (*fields, *of_rows)}


def _unknown_value(key: str, value: str, valid: Mapping[str, set[str]], rows: Rows) -> SpecError:
    unknown = unknown_name(f"value of --only {key}", value, valid[key])
    if key == "seed":
        return SpecError(f"{unknown} --seeds N plans seeds 0 to N-1.")
    others = sorted({other for one in rows.values() for other in one} - {key})
    told = [f"{other}={', '.join(in_order(valid[other]))}" for other in others if len(valid[other]) > 1]
    return SpecError(f"{unknown} The board names its rows by {'; '.join(told)}.") if told else unknown


def make_plan(
    experiments: Sequence[Experiment], store: Path, resources: Resources, *, retry_failed: bool = False
) -> list[PlannedRun]:
    """Look up every experiment in the run store.

    Args:
        experiments: parents before those that need them, and with them.
        store: the run store.
        resources: of every run.
        retry_failed: plan as if what failed, or is void, had not been tried; nothing is changed for that.
    """
    jobs = [Job(experiment, RunDirectory.of(store, experiment), resources) for experiment in experiments]
    plan: dict[str, PlannedRun] = {}
    for job, found in zip(jobs, stand_all(jobs), strict=True):
        standing = found
        if retry_failed:
            parents = {parent.id: plan[parent.id].standing for parent in job.experiment.parents if parent.id in plan}
            standing = after_retry(job.directory, found, parents)
        plan[job.experiment.id] = PlannedRun(job, standing, found)
    return list(plan.values())


def stand_all(jobs: Sequence[Job]) -> list[Standing]:
    """Judge where each run stands; parents come before those that need them, so that each is looked up once."""
    known: dict[str, Standing] = {}
    for job in jobs:
        for parent in job.experiment.parents:
            if parent.id not in known:
                known[parent.id] = stand_alone(job.directory.of_parent(parent), parent)
        parents = {parent.id: known[parent.id] for parent in job.experiment.parents}
        known[job.experiment.id] = stand(job.directory, parents)
    return [known[job.experiment.id] for job in jobs]


def count(plan: Sequence[PlannedRun]) -> str:
    """Count, in one line, runs that are new, running, interrupted, finished and failed, and those that have to wait."""
    counts = Counter(run.standing.state for run in plan)
    num_new = counts["new"] + counts["waiting"] + counts["blocked"]
    num_failed = counts["failed"] + counts["void"]
    resumed = [f"{counts['interrupted']} to resume"] if counts["interrupted"] else []
    parts = [
        f"{num_new} new", *resumed, f"{counts['running']} running", f"{counts['done']} finished", f"{num_failed} failed"
    ]  # fmt: skip
    words = f"; {counts['waiting']} wait for others of these" if counts["waiting"] else ""
    words += f"; {counts['blocked']} cannot start, since what they need has failed" if counts["blocked"] else ""
    return f"{len(plan)} runs: {', '.join(parts)}{words}"


def _same(text: str, value: str) -> bool:
    """Say whether a command line's text means this value: 0.10 is 0.1."""
    try:
        return float(text) == float(value)
    except ValueError:
        return text == value
