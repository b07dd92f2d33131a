"""``--tune N``: which tries are to be trained before a grid, and the recipes that they choose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from launchers.command.grid_request import GridRequest, untuned
from launchers.core.run_names import describe
from suite.base.errors import SpecError
from suite.spec.experiment import Experiment, with_ancestors
from suite.store.attempts import device_hours, read_attempts
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.store.tuning import (
    SPACE_IN_WORDS,
    Tuning,
    draw_settings,
    read_tuning,
    tries_of,
    tunable,
    tuning_path,
    write_tuning,
)


def describe_tuning(grid: GridRequest) -> str:
    """Say what ``--tune`` tries, and which of the grid's runs are not tuned by themselves."""
    tuned = {one.configuration_id for one in tunable(grid.experiments)}
    others = {e.configuration_id: e for e in grid.experiments if e.parents and e.configuration_id not in tuned}
    names = ", ".join(name.partition(" seed ")[0] for name in describe(list(others.values())).values())
    said = f"--tune {grid.options.tune}: {SPACE_IN_WORDS}"
    return f"{said}. Not tuned by themselves, as they start from tuned runs: {names}" if names else said


@dataclass(frozen=True)
class Tries:
    """The tries that a grid needs first: those of the chosen experiments of its profile that were not tuned yet."""

    grid: GridRequest
    known: Tuning
    of: dict[str, list[Experiment]]

    @classmethod
    def before(cls, grid: GridRequest) -> Tries | None:
        """Find the tries before a grid; None where all have been made, or it has no ``--tune``."""
        options = grid.options
        if not options.tune:
            return None
        if not (tunable := untuned(grid.suite, options)):
            raise SpecError(f"--tune: none of these runs of {grid.suite.name} trains a model from its own start")
        known = read_tuning(options.runs, grid.suite.name, grid.profile_name)
        known = known or Tuning(settings=draw_settings(options.tune))
        left = [one for one in tunable if one.configuration_id not in known.top1_percent]
        if not left:
            return None
        if options.freeze is not None:
            raise SpecError("--freeze: these recipes are not tuned yet; start the grid without it first")
        of = {one.configuration_id: tries_of(one, known.settings) for one in left}
        experiments = with_ancestors(one for tries in of.values() for one in tries)
        return cls(replace(grid, experiments=experiments), known, of)

    def record(self) -> bool:
        """Write down what the tries have shown, and say whether all models are tuned.

        One is not where a try can still be trained, or all have failed.
        """
        options, tuning = self.grid.options, self.known
        for configuration, tries in self.of.items():
            runs = [RunDirectory.of(options.runs, one) for one in tries]
            statuses = [find_run_status(run, one) for run, one in zip(runs, tries, strict=True)]
            results = [status.result for status in statuses if status.state == "done" and status.result]
            if results and not any(status.is_open for status in statuses):
                top1 = tuple(status.result.top1_percent if status.result else 0.0 for status in statuses)
                hours = sum(device_hours(read_attempts(run)) for run in runs)
                found = {"top1_percent": {configuration: top1}, "hours": {configuration: hours}}
                tuning = tuning.model_copy(update={name: getattr(tuning, name) | new for name, new in found.items()})
        write_tuning(tuning_path(options.runs, self.grid.suite.name, self.grid.profile_name), tuning)
        return self.of.keys() <= tuning.top1_percent.keys()
