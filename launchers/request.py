"""What a command line asks for: one profile of one suite, the experiments chosen from it, and how to train them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rich.console import Console

from imagesets.prepared import make_ready
from launchers.plan import PlannedRun, make_plan, select
from launchers.report import print_plan
from suite.errors import SpecError
from suite.records import RunDirectory
from suite.spec import Experiment, Profile, Resources, Suite
from suite.suites import get_suite, list_suites


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
        if options.runs.exists() and not options.runs.is_dir():
            raise SpecError(f"--runs {options.runs} is a file; expected a folder, or a name that is free")
        return cls(suite, name, profile, select(profile.experiments(options.seeds), options.only), options)

    def plan(self, resources: Resources, console: Console) -> list[PlannedRun]:
        """Look every run up, and say what was found; with ``--retry-failed`` failures are forgotten first."""
        store = self.options.runs
        if self.options.retry_failed and not self.options.dry_run:
            for experiment in self.experiments:
                RunDirectory.of(store, experiment).forget_failure()
        plan = make_plan(self.experiments, store, resources)
        print_plan(console, self.suite, self.profile_name, self.profile, plan, store)
        return plan

    def make_data_ready(self) -> None:
        """Raises:
        DataError: if images are missing that cannot be fetched.
        """
        for dataset in sorted({experiment.dataset for experiment in self.experiments}):
            make_ready(dataset, self.options.loader, self.options.data_dir)
