"""What a command line asks for: one profile of one suite, the experiments chosen from it, and how to train them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from imagesets.prepared import make_ready
from launchers.plan import PlannedRun, make_plan, select
from launchers.report import print_plan
from suite.errors import DataError, SpecError
from suite.spec import Experiment, Resources
from suite.suites import get_suite, list_suites
from suite.tables import Profile, Suite


@dataclass(frozen=True)
class GridRequest:
    """A grid: ``experiments`` are those of ``profile`` that ``--only`` selects, of all seeds."""

    suite: Suite
    profile_name: str
    profile: Profile
    experiments: list[Experiment]
    options: argparse.Namespace

    @classmethod
    def of(cls, options: argparse.Namespace) -> GridRequest:
        """Raises:
        SpecError: a suite, profile, precision or filter that there is not, or a run store that is a file.
        """
        if options.suite is None:
            raise SpecError(f"--suite NAME is missing. Valid: {', '.join(list_suites())}.")
        suite = get_suite(options.suite)
        name = f"{options.profile}-{options.precision}" if options.precision else options.profile
        profile = suite.profile(name)
        if options.device:
            profile = profile.model_copy(update={"device": options.device})
        if options.runs.exists() and not options.runs.is_dir():
            raise SpecError(f"--runs {options.runs} is a file; expected a folder, or a name that is free")
        experiments = select(profile.experiments(options.seeds), options.only)
        _check_teacher(experiments, options)
        return cls(suite, name, profile, experiments, options)

    def plan(self, resources: Resources, console: Console) -> list[PlannedRun]:
        """Look every run up, and say what was found. Changes nothing, also with ``--retry-failed``."""
        store = self.options.runs
        plan = make_plan(self.experiments, store, resources, retry_failed=self.options.retry_failed)
        print_plan(console, self.suite, self.profile_name, self.profile, plan, store)
        return plan

    def forget_failures(self, plan: Sequence[PlannedRun]) -> None:
        """With ``--retry-failed``, let what failed or is void start again."""
        if self.options.retry_failed:
            for run in plan:
                if run.status in ("new", "interrupted"):
                    run.job.directory.forget_failure()

    def make_data_ready(self, runs: Sequence[PlannedRun]) -> None:
        """Raises:
        DataError: if images are missing that cannot be fetched.
        """
        names = sorted({run.job.experiment.dataset for run in runs})
        for name in names:
            try:
                make_ready(name, self.options.loader, self.options.data_dir)
            except DataError as error:
                others = " ".join(f"dataset={other}" for other in names if other != name)
                hint = f" `--only {others}` trains the others." if others else ""
                raise DataError(f"{error}{hint}") from error


def _check_teacher(experiments: Sequence[Experiment], options: argparse.Namespace) -> None:
    names = {e.kind_options["teacher"] for e in experiments if "teacher" in e.kind_options}
    looks_only = options.dry_run or options.status or options.cancel
    if names and not looks_only and options.teacher_weights is None:
        raise SpecError(
            f"the teacher {', '.join(map(str, names))} needs its trained weights, which are not part of this project: "
            "--teacher-weights FILE names them (.pth or .safetensors, as timm's own)"
        )
