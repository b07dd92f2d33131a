"""The request of a command line: one profile of one suite, the experiments chosen from it, and how to train them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from imagesets.catalog import CATALOG
from imagesets.fractions import fraction_indices
from imagesets.manifest import read_index
from imagesets.prepared import check_sides, find_info, find_prepared, make_ready
from launchers.command.custom_models import parse_custom_model, refuse_broken
from launchers.command.options import GridOptions
from launchers.command.plan_report import print_plan
from launchers.core.locks import check_locks, lock_of_one_node
from launchers.core.plan import PlannedRun, find_rows, make_plan, select
from launchers.tracking import check_installed
from leaderboards.schemas.answers import Answer
from suite.base.errors import DataError, SpecError, missing_weights
from suite.base.exit_codes import Exit
from suite.papers import get_suite, list_suites
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile
from suite.spec.resources import Resources
from suite.spec.suite import Suite
from suite.spec.tuning import TUNED, tunable
from suite.store.custom_models import record_custom_models
from suite.store.run_status import reopen
from suite.store.run_store import experiments_folder, find_runs
from suite.store.tuning import check_tuned, read_tuning

_FEW_STEPS = 50  # a smoke run takes sixty


@dataclass(frozen=True)
class Outcome:
    """How a grid went: its exit status, whether it is over, so that its leaderboard can be built, and what was seen."""

    status: Exit
    is_over: bool = False
    answer: Answer | None = None


@dataclass(frozen=True)
class GridRequest:
    """A grid: ``experiments`` are those of ``profile`` that ``--only`` selects, of all seeds."""

    suite: Suite
    profile_name: str
    profile: Profile
    experiments: list[Experiment]
    options: GridOptions
    custom_models: tuple[CustomModel, ...] = ()

    @classmethod
    def of(cls, options: GridOptions) -> GridRequest:
        """Look the suite, the profile and the chosen experiments up.

        Raises:
            SpecError: a suite, profile, precision, custom model, image set or filter that there is not, a run store
                that is a file, or a tracker that is not installed.
        """
        if options.suite is None:
            raise SpecError(f"--suite NAME is missing. Valid: {', '.join(list_suites())}.")
        custom_models = tuple(map(parse_custom_model, options.custom_models))
        suite = with_custom_models(get_suite(options.suite), custom_models, options.profile_name)
        if options.dataset:
            find_info(options.dataset, options.data_dir, options.loader)
        tuning = read_tuning(options.runs, suite.name, options.profile_name)
        is_tuned = tuning and all(one.configuration_id in tuning.top1_percent for one in untuned(suite, options))
        if is_tuned or not options.tune:
            suite = suite.model_copy(tuning=tuning)
            check_tuned(suite, options.profile_name)
        profile = suite.profile(options.profile_name)
        if options.device:
            profile = profile.model_copy(device=options.device)
        check_installed(options.track)
        _check_store(options.runs)
        rows = find_rows(suite, profile) if options.only else None
        experiments = select(profile.experiments(begun_seeds(options, profile)), options.only, rows)
        teachers = {e.kind_options["teacher"] for e in experiments if "teacher" in e.kind_options}
        if teachers and not options.starts_nothing and options.teacher_weights is None:
            raise missing_weights(", ".join(map(str, teachers)))
        return cls(suite, options.profile_name, profile, experiments, options, custom_models)

    def plan(self, resources: Resources, console: Console) -> list[PlannedRun]:
        """Look every run up, and say what was found. Changes nothing, also with ``--retry-failed``."""
        store = self.options.runs
        plan = make_plan(self.experiments, store, resources, retry_failed=self.options.retry_failed)
        print_plan(console, self.suite, self.profile_name, self.profile, plan, store)
        to_do = [run.job.experiment for run in plan if run.status.is_open]
        check_sides(to_do, self.options.loader, self.options.data_dir)
        for warning in _find_too_few_images(to_do, self.options):
            console.print(f"warning: {warning}", style="yellow")
        return plan

    def prepare(self, runs: Sequence[PlannedRun], console: Console) -> None:
        """Make ready what runs need that are about to start, if any: their images, custom models."""
        if runs:
            self._make_data_ready(runs)
        self._enter_custom_models(runs, console)

    def make_store(self, console: Console) -> None:
        """Make the folder of runs; a SpecError where it takes no files, or its file system no locks."""
        folder = experiments_folder(self.options.runs)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_locks(folder)
        except OSError as error:
            expected = "expected a folder of yours"
            raise SpecError(f"--runs {self.options.runs} cannot be written to: {error.strerror}; {expected}") from error
        if why := lock_of_one_node(folder):
            where = f"{folder} may keep locks on this node alone ({why})"
            console.print(f"warning: {where}: start no grid on another node over it", style="yellow")

    def _enter_custom_models(self, to_do: Sequence[PlannedRun], console: Console) -> None:
        """Try the models that are none of ours, then write down in the store who is entered, and in whose place."""
        refuse_broken((run.job.experiment for run in to_do), self.options)
        board = f"{self.suite.name}/{self.profile_name}"
        entered = [one.model_copy(boards=(board,)) for one in self.custom_models]
        for other in record_custom_models(self.options.runs, entered):
            console.print(f"{board} shows no longer, though its runs stay: {other.describe()}", soft_wrap=True)

    def forget_failures(self, plan: Sequence[PlannedRun]) -> None:
        """With ``--retry-failed``, let what failed or is void start again."""
        if self.options.retry_failed:
            for run in plan:
                reopen(run.job.directory, run.found)

    def _make_data_ready(self, runs: Sequence[PlannedRun]) -> None:
        """Fetch or find the images that the runs need; a DataError for images that cannot be fetched."""
        names = sorted({run.job.experiment.dataset for run in runs})
        for name in names:
            try:
                make_ready(name, self.options.loader, self.options.data_dir)
            except DataError as error:
                others = " ".join(f"dataset={other}" for other in names if other != name)
                hint = f" `--only {others}` trains the others." if others else ""
                raise DataError(f"{error}{hint}") from error


def begun_seeds(options: GridOptions, profile: Profile) -> range:
    """The seeds of a grid; with ``--seeds until``, whose trainings have fixed numbers, as many as were begun so far."""
    if options.until is None:
        return options.seeds
    begun = (seed for experiment in profile.experiments() for seed in find_runs(options.runs, experiment))
    return range(max([len(options.seeds) - 1, *begun]) + 1)


def untuned(suite: Suite, options: GridOptions) -> list[Experiment]:
    """List what ``--tune`` tunes for the chosen experiments, with the recipes that they have before."""
    profile = suite.profile(options.profile_name.partition(TUNED)[0])
    shown = {entry.experiment.configuration_id: entry.experiment for entry in profile.entries}
    rows = find_rows(suite, profile) if options.only else None
    chosen = {one.configuration_id for one in select(list(shown.values()), options.only, rows)}
    return [one for one in tunable(shown.values()) if one.configuration_id in chosen]


def _find_too_few_images(experiments: Sequence[Experiment], options: GridOptions) -> Iterator[str]:
    """Say which runs on an image set of the user's own would be too short to tell anything, or fail."""
    own, short = [one for one in experiments if one.is_trained and one.dataset not in CATALOG], []
    for name in sorted({one.dataset for one in own}):
        with contextlib.suppress(DataError):  # a set that is not there is reported where it is needed
            if (found := find_prepared(name, options.loader, options.data_dir)) is None:
                continue
            labels = read_index(found[0], "train").labels
            for fraction in sorted({one.train_fraction for one in own if one.dataset == name}):
                chosen = [one for one in own if (one.dataset, one.train_fraction) == (name, fraction)]
                try:
                    num_kept = len(fraction_indices(labels, fraction, len(found[1].classes)))
                    short += [steps for one in chosen if (steps := one.num_steps(num_kept)) < _FEW_STEPS]
                except DataError as error:
                    yield f"{len(chosen)} runs on {name} will fail: {error}"
    if short:
        yield f"{len(short)} runs train for {max(short)} steps at most: take a profile of more epochs, or more images"


def _check_store(store: Path) -> None:
    """Check once that runs may be there: no file, nor below one, and readable by this user."""
    try:
        there = next(place for place in (store.absolute(), *store.absolute().parents) if place.exists())
        if not there.is_dir():
            unpack = f". Unpack it first: mkdir FOLDER && tar xf {there} -C FOLDER" * there.name.endswith(".tar.xz")
            raise SpecError(f"--runs {store}: {there} is a file; expected a folder, or a name that is free{unpack}")
        if there == store.absolute():
            os.listdir(store)
    except OSError as error:
        raise SpecError(f"--runs {store} cannot be read: {error.strerror}; expected a folder of yours") from error
