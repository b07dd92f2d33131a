"""Equal tuning: the same tries for every model of a profile, and the profile of the recipes that they chose.

    Profile + Settings -> experiments on held-out training images, by a seed that no board has
        -> Tuning, kept in ``RUNS/tuned/SUITE-PROFILE.json`` -> Profile

Every setting is drawn before the first is trained, so that all models try the same ones, at once on a cluster.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import NonNegativeFloat, PositiveFloat

from suite.base.errors import SpecError
from suite.base.files import naming_disk_errors, read_file, write_atomically
from suite.base.frozen import Frozen
from suite.base.reading import read_model, unreadable
from suite.spec.experiment import Experiment
from suite.spec.suite import TUNED, Suite

FOLDER = "tuned"
SEED = 1000
_TUNED = ("training", "distillation")  # kinds of experiments that train from their own start
SPACE: dict[str, tuple[float, float]] = {"rate": (0.25, 4.0), "warmup": (0.0, 0.2), "decay": (0.1, 10.0)}
SPACE_IN_WORDS = (
    "try 1 is the suite's recipe; the others draw learning_rate x 0.25 to 4 (log), warmup_epochs of 0 to 20 % of the "
    f"epochs, and weight_decay x 0.1 to 10 (log), all models the same; scored on held-out training images, seed {SEED}"
)


class Try(Frozen):
    """One try: factors of learning rate and weight decay, and the warm-up's share of the epochs; None: the recipe's."""

    rate: PositiveFloat = 1.0
    warmup: NonNegativeFloat | None = None
    decay: PositiveFloat = 1.0

    def apply(self, experiment: Experiment) -> Experiment:
        """Change an experiment's recipe; its name says by what."""
        if self == Try():
            return experiment
        recipe = experiment.recipe
        changed: dict[str, Any] = {
            "learning_rate": float(f"{recipe.learning_rate * self.rate:.3g}"),
            "weight_decay": float(f"{recipe.weight_decay * self.decay:.3g}"),
        }
        if self.warmup is not None:
            changed["warmup_epochs"] = float(f"{recipe.epochs * self.warmup:.3g}")
        said = "".join(f", {name} {value:g}" for name, value in changed.items())
        changed["name"] = f"{recipe.name}, tuned{said}"
        return experiment.model_copy(recipe=recipe.model_copy(update=changed))


class Tuning(Frozen):
    """Finished tries of a suite's profile, each by the ``configuration_id`` of the untuned experiment.

    A try that failed counts 0 %. ``hours`` are those of the devices on which they were trained.
    """

    settings: tuple[Try, ...]
    top1_percent: dict[str, tuple[float, ...]] = {}  # noqa: RUF012
    hours: dict[str, float] = {}  # noqa: RUF012

    def as_record(self) -> bytes:
        return self.model_dump_json(indent=1).encode()

    def best(self, experiment: Experiment) -> Experiment | None:
        """Train as the best try, the first of equal ones; what starts from other runs starts from their best.

        None where it was not tuned.
        """
        if found := self.top1_percent.get(experiment.configuration_id):
            return self.settings[found.index(max(found))].apply(experiment)
        parents = tuple(filter(None, map(self.best, experiment.parents)))
        if experiment.kind in _TUNED or len(parents) < len(experiment.parents):
            return None
        has_theirs = parents and experiment.recipe == experiment.parents[0].recipe
        recipe = parents[0].recipe if has_theirs else experiment.recipe
        return experiment.model_copy(parents=parents, recipe=recipe)


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
    study, found = optuna.create_study(sampler=sampler), [Try()]
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(low, high, log=low > 0) for name, (low, high) in SPACE.items()
    }
    while len(found) < num_tries:
        trial = study.ask(space)
        found.append(Try(**{name: float(f"{value:.3g}") for name, value in trial.params.items()}))
        study.tell(trial, 0.0)
    return tuple(found)


def tunable(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Select one experiment of each configuration that trains a model from its own start, or that others start from."""
    found: dict[str, Experiment] = {}
    for one in experiments:
        selected = [one] if one.kind in _TUNED else tunable(one.parents)
        found |= {each.configuration_id: each for each in selected}
    return list(found.values())


def tries_of(experiment: Experiment, settings: Iterable[Try]) -> list[Experiment]:
    """List the tries of an experiment, in the order of the settings."""
    return [_hold_out(setting.apply(experiment.with_seed(SEED))) for setting in settings]


def _hold_out(experiment: Experiment) -> Experiment:
    parents = tuple(map(_hold_out, experiment.parents))
    return experiment.model_copy(evaluated_on="held_out", parents=parents)


def with_tuning(suite: Suite, profile_name: str, tuning: Tuning | None) -> Suite:
    """Show in a profile called ``laptop+tune8`` what was tuned, by its best recipes; other profiles stay.

    SpecError where nothing was tuned for it in this store.
    """
    if TUNED not in profile_name or profile_name in suite.tuned:
        return suite
    if tuning is None:
        raise SpecError(f"profile {profile_name} was not tuned in this store: start its grid with --tune")
    profile = suite.profile(profile_name)
    entries = []
    for entry in profile.entries:
        if best := tuning.best(entry.experiment):
            found = {"experiment": best, "alternatives": (), "num_tries": len(tuning.settings)}
            entries.append(entry.model_copy(update=found))
    shown = tunable(entry.experiment for entry in profile.entries)
    hours = sum(tuning.hours.get(one.configuration_id, 0.0) for one in shown)
    note = f"{profile.scale_note or 'the protocol of the paper'}; each recipe tuned by {len(tuning.settings)} tries"
    tuned = profile.model_copy(entries=entries, scale_note=note, tuning_hours=hours)
    return suite.model_copy(tuned={profile_name: tuned})


def tuning_path(store: Path, suite: str, profile: str) -> Path:
    """Where a store keeps the tuning of a suite's profile."""
    return store / FOLDER / f"{suite}-{profile}.json"


def read_tuning(store: Path, suite: str, profile: str) -> Tuning | None:
    """Read the tuning of a suite's profile; None where nothing was tuned; RecordError where it is unreadable."""
    if TUNED not in profile:
        return None
    path = tuning_path(store, suite, profile)
    try:
        return read_model(Tuning, read_file(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise unreadable(path, error, "Delete it, and start the grid with --tune again.") from error


def write_tuning(path: Path, tuning: Tuning) -> None:
    with naming_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, tuning.as_record())
