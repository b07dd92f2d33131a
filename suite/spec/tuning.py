"""Equal tuning, as data: the same tries for every model of a profile, and the profile of the recipes that they chose.

    Profile + Try -> experiments on held-out training images, by a seed that no board has -> Tuning -> Profile

Every setting is drawn before the first is trained, so that all models try the same ones, at once on a cluster.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import NonNegativeFloat, PositiveFloat

from suite.base.frozen import Frozen
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile

TUNED = "+tune"  # in a profile's name, before the number of tries
SEED = 1000
_TUNED = ("training", "distillation")  # kinds of experiments that train from their own start


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
        values = {"learning_rate": recipe.learning_rate * self.rate, "weight_decay": recipe.weight_decay * self.decay}
        if self.warmup is not None:
            values["warmup_epochs"] = recipe.epochs * self.warmup
        changed: dict[str, Any] = {name: float(f"{value:.3g}") for name, value in values.items()}
        said = "".join(f", {name} {value:g}" for name, value in changed.items())
        return experiment.model_copy(recipe=recipe.model_copy(name=f"{recipe.name}, tuned{said}", **changed))


class Tuning(Frozen):
    """Finished tries of a suite's profile, each by the ``configuration_id`` of the untuned experiment.

    A try that failed counts 0 %. ``hours`` are those of the devices on which they were trained.
    """

    settings: tuple[Try, ...]
    top1_percent: dict[str, tuple[float, ...]] = {}  # noqa: RUF012
    hours: dict[str, float] = {}  # noqa: RUF012

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

    def choose(self, profile: Profile) -> Profile:
        """Show what was tuned, by its best recipes."""
        entries = [
            entry.model_copy(experiment=best, alternatives=(), num_tries=len(self.settings))
            for entry in profile.entries
            if (best := self.best(entry.experiment))
        ]
        shown = tunable(entry.experiment for entry in profile.entries)
        hours = sum(self.hours.get(one.configuration_id, 0.0) for one in shown)
        note = f"{profile.scale_note or 'the protocol of the paper'}; each recipe tuned by {len(self.settings)} tries"
        return profile.model_copy(entries=entries, scale_note=note, tuning_hours=hours)


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
