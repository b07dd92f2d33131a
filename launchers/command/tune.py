"""``--tune N``: which tries are to be trained before a grid, and the recipes that they choose."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from launchers.command.grid_request import GridRequest, untuned
from launchers.core.run_names import describe
from suite.base.errors import SpecError
from suite.spec.experiment import Experiment, with_ancestors
from suite.spec.tuning import SEED, Try, Tuning, tries_of, tunable
from suite.store.attempts import device_hours, read_attempts
from suite.store.run_directory import RunDirectory
from suite.store.run_status import RunStatus, find_run_status
from suite.store.tuning import add_tuning, read_tuning

_SPACE = {"rate": (0.25, 4.0), "warmup": (0.0, 0.2), "decay": (0.1, 10.0)}
_RATE, _WARMUP, _DECAY = (f"{low:g} to {high:g}" for low, high in _SPACE.values())
_SPACE_IN_WORDS = (
    f"try 1 is the suite's recipe; the others draw learning_rate x {_RATE} (log), warmup_epochs of {_WARMUP} of the "
    f"epochs, and weight_decay x {_DECAY} (log), all models the same; scored on held-out training images, seed {SEED}"
)


def draw_settings(num_tries: int) -> tuple[Try, ...]:
    """Draw the same settings for a number of tries, by Optuna's quasi-random sampler; SpecError without Optuna."""
    try:
        import optuna
    except ImportError as error:
        raise SpecError("--tune needs Optuna: python -m pip install 'convolutional-prior-suite[tune]'") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.QMCSampler(scramble=True, seed=SEED, warn_independent_sampling=False)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = [Try()]

    def draw(trial: optuna.Trial) -> float:
        drawn = {name: trial.suggest_float(name, *limits, log=limits[0] > 0) for name, limits in _SPACE.items()}
        found.append(Try(**{name: float(f"{value:.3g}") for name, value in drawn.items()}))
        return 0.0

    optuna.create_study(sampler=sampler).optimize(draw, n_trials=num_tries - 1)
    return tuple(found)


def describe_tuning(grid: GridRequest) -> str:
    """Say what ``--tune`` tries, and which of the grid's runs are not tuned by themselves."""
    tuned = {one.configuration_id for one in tunable(grid.experiments)}
    others = {e.configuration_id: e for e in grid.experiments if e.parents and e.configuration_id not in tuned}
    names = ", ".join(name.partition(" seed ")[0] for name in describe(list(others.values())).values())
    said = f"--tune {grid.options.tune}: {_SPACE_IN_WORDS}"
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
        known, of = known or Tuning(settings=draw_settings(options.tune)), {}
        for one in tunable:
            tries = tries_of(one, known.settings)
            is_again = options.retry_failed and {"failed", "void"} & {one.state for one in _find_statuses(grid, tries)}
            if is_again or one.configuration_id not in known.top1_percent:
                of[one.configuration_id] = tries
        if not of:
            return None
        if options.freeze is not None:
            raise SpecError("--freeze: these recipes are not tuned yet; start the grid without it first")
        experiments = with_ancestors(one for tries in of.values() for one in tries)
        return cls(replace(grid, experiments=experiments), known, of)

    def record(self) -> bool:
        """Write down what the tries have shown, and say whether all models are tuned.

        One is not where a try can still be trained, or all have failed.
        """
        store, top1_percent, hours = self.grid.options.runs, {}, {}
        for configuration, tries in self.of.items():
            statuses = _find_statuses(self.grid, tries)
            reached = [one.result.top1_percent if one.result and one.state == "done" else None for one in statuses]
            if any(top1 is not None for top1 in reached) and not any(status.is_open for status in statuses):
                top1_percent[configuration] = tuple(top1 or 0.0 for top1 in reached)
                attempts = (read_attempts(RunDirectory.of(store, one)) for one in tries)
                hours[configuration] = sum(map(device_hours, attempts))
        found = Tuning(settings=self.known.settings, top1_percent=top1_percent, hours=hours)
        add_tuning(store, self.grid.suite.name, self.grid.profile_name, found)
        return self.of.keys() <= top1_percent.keys()


def _find_statuses(grid: GridRequest, tries: Sequence[Experiment]) -> list[RunStatus]:
    return [find_run_status(RunDirectory.of(grid.options.runs, one), one) for one in tries]
