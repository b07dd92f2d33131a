"""Run store -> what is known about the runs of every configuration of a profile; which of them count is decided later.

Every result is read, whatever its seed: to leave one out would be to choose. A result that no longer holds, as the
protocol has changed, is void.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from leaderboards.boards.metrics import read_metric
from suite.base.errors import RecordError
from suite.spec.experiment import Experiment, with_ancestors
from suite.spec.profile import Profile
from suite.spec.suite import RelativeTo, Table
from suite.store.attempts import device_hours, read_attempts
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import NEW, RunStatus, name_state, read_run_status, with_needed
from suite.store.run_store import find_runs

ALWAYS_READ = ("top1_percent", "images_per_s", "num_evaluations", "num_test_images")  # for searches and provenance


@dataclass(frozen=True)
class SeedFailure:
    """A seed without a usable result. ``log_path`` is the file to open next, "" where there is none."""

    seed: int
    reason: str
    log_path: str
    state: Literal["failed", "void"] = "failed"


@dataclass
class SeedRuns:
    """The runs of one configuration: what boards need of their results, by seed.

    The ``Result`` objects are released at once: with thousands of them, garbage collection takes as long as reading.
    """

    statuses: dict[int, RunStatus] = field(default_factory=dict)  # without their results; of planned seeds too
    values: dict[int, dict[str, float]] = field(default_factory=dict)  # of results that hold
    directories: dict[int, RunDirectory] = field(default_factory=dict)  # of all that were found, finished or not
    device_hours: dict[int, float] = field(default_factory=dict)  # of all attempts, whatever came of them
    commits: dict[int, str] = field(default_factory=dict)
    circumstances: dict[int, dict[str, str | int | None]] = field(default_factory=dict)  # by what several are called
    batch_norm_images: dict[int, int] = field(default_factory=dict)  # at once, where fewer than the recipe's batch
    plans: dict[int, str] = field(default_factory=dict)  # digest of the frozen plan under which it was trained, or ""
    num_corrupt_images: dict[int, int] = field(default_factory=dict)  # where there were any

    @property
    def ended(self) -> Iterable[RunDirectory]:
        """The runs that had ended, well or not, when they were read."""
        return (run for seed, run in self.directories.items() if not self.statuses[seed].is_open)

    @property
    def failures(self) -> tuple[SeedFailure, ...]:
        """The seeds that have no usable result and get none without a retry."""
        failures = []
        for seed, status in sorted(self.statuses.items()):
            path = str(status.path or "")
            if status.state == "void":
                why = (
                    f"{name_state('void')}: {status.reason}. Run the grid again with --retry-failed: it trains it again"
                )
                failures.append(SeedFailure(seed, why, path, "void"))
            elif status.state in ("failed", "blocked"):
                failures.append(SeedFailure(seed, status.reason, path))
        return tuple(failures)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The reasons for which unfinished seeds wait or were interrupted."""
        return tuple(s.reason for s in self.statuses.values() if s.is_open and s.reason)


def pick(runs: Mapping[int, SeedRuns]) -> SeedRuns:
    """Take the run of each seed from one configuration, in this order."""
    names = [field.name for field in fields(SeedRuns)]
    return SeedRuns(
        *({seed: getattr(of, name)[seed] for seed, of in runs.items() if seed in getattr(of, name)} for name in names)
    )


@dataclass(frozen=True)
class Collection:
    """All runs of a profile, also those that others depend on, by ``Experiment.configuration_id``."""

    runs: dict[str, SeedRuns]
    seeds: Sequence[int]  # that are planned for each configuration


def collect(
    profile: Profile, store: Path, seeds: Sequence[int] | None = None, tables: Iterable[Table] = ()
) -> Collection:
    """Read the runs of every entry; an experiment of several entries is read once.

    Args:
        profile: the profile with the entries.
        store: the run store.
        seeds: seeds planned for each configuration; None: those that the fullest one of an entry has on disk, so that
            uneven ones show as partial.
        tables: tables whose derived columns may need metrics that no entry names.

    Raises:
        RecordError: Two folders stand for the same seed, or a folder cannot be listed.
    """
    candidates = [candidate for entry in profile.entries for candidate in entry.candidates]
    experiments = {experiment.configuration_id: experiment for experiment in with_ancestors(candidates)}
    metrics = {*ALWAYS_READ, *(metric for entry in profile.entries for metric in entry.columns.values())}
    metrics |= {column.metric for table in tables for column in table.derived if isinstance(column, RelativeTo)}
    runs: dict[str, SeedRuns] = {}
    for configuration, experiment in experiments.items():  # parents first
        runs[configuration] = _read_configuration(store, experiment, sorted(metrics), runs)
    ours = [candidate for entry in profile.entries if not entry.beside for candidate in entry.candidates]
    on_disk = (sorted(runs[candidate.configuration_id].directories) for candidate in ours or candidates)
    planned = seeds or max(on_disk, key=len, default=[]) or [0]
    for configuration, experiment in experiments.items():
        for seed in set(planned) - set(runs[configuration].statuses):
            runs[configuration].statuses[seed] = with_needed(NEW, _parents(experiment, seed, runs))
    return Collection(runs=runs, seeds=planned)


def _read_configuration(
    store: Path, experiment: Experiment, metrics: Iterable[str], read: Mapping[str, SeedRuns]
) -> SeedRuns:
    """Read the runs of one configuration, which may depend on those that were ``read`` before."""
    try:
        runs = find_runs(store, experiment)
    except OSError as error:
        raise RecordError(f"cannot list {error.filename}: {error.strerror}. Move it out of the run store.") from error
    kept = SeedRuns(directories=runs)
    for seed, run in runs.items():
        status = read_run_status(run, _parents(experiment, seed, read))
        kept.statuses[seed] = replace(status, result=None)
        if status.result is None:
            kept.device_hours[seed] = device_hours(read_attempts(run))
        elif status.state == "done":
            _keep(kept, status.result, metrics)
        else:
            kept.device_hours[seed] = status.result.device_hours
    return kept


def _parents(experiment: Experiment, seed: int, read: Mapping[str, SeedRuns]) -> dict[str, RunStatus]:
    """The status of each run that the seed's run depends on."""
    if not experiment.parents:
        return {}
    parents = experiment.with_seed(seed).parents
    return {parent.id: read[parent.configuration_id].statuses.get(seed, NEW) for parent in parents}


def _keep(kept: SeedRuns, result: Result, metrics: Iterable[str]) -> None:
    seed, micro = result.experiment.seed, result.micro_batch_size
    found = {metric: read_metric(result, metric) for metric in metrics}
    kept.values[seed] = {metric: value for metric, value in found.items() if value is not None}
    kept.device_hours[seed] = result.device_hours
    kept.commits[seed] = result.commit
    kept.circumstances[seed] = {  # the last digits of an accuracy may depend on each; None where it is not recorded
        "loaders": result.loader,
        "modes": "compiled" if result.compiled else "eager",
        "devices": result.device,
        "numbers of ranks": result.num_ranks,
        "numbers of threads a rank": result.threads_per_rank or None,
        "sizes of micro-batches": micro or None,
    }
    kept.plans[seed] = result.plan_sha256
    if result.has_batch_norm and 0 < micro < result.experiment.recipe.batch_size:
        kept.batch_norm_images[seed] = micro
    if result.num_corrupt_images:
        kept.num_corrupt_images[seed] = result.num_corrupt_images
