"""Collected runs -> what a profile has cost, and what its remaining runs will cost.

Costs are estimated from finished runs, else from FLOPs. Leaderboards count no FLOPs, as that needs torch: known are
those of the shipped models, and of models that ``launchers/grid.py --list`` or a finished run has counted.
"""

import contextlib
import statistics
from collections.abc import Hashable
from dataclasses import dataclass

from leaderboards.boards.collect import Collection
from suite.base.errors import SpecError
from suite.cost.costs import run_flops
from suite.cost.known_flops import find_flops
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile
from suite.spec.resources import Resources


@dataclass(frozen=True)
class Cost:
    """Hours of a GPU, or of a core in a profile for CPUs; ``hours_to_go`` is without ``num_unknown`` runs."""

    hours_spent: float
    hours_to_go: float
    num_unknown: int
    unit: str


def estimate_cost(profile: Profile, collection: Collection) -> Cost:
    """The cost of all distinct runs, also those that others depend on.

    A remaining run costs as much as the finished ones of its configuration; without any, as those of the same model on
    the same data per image seen (``epochs * train_fraction``); else its FLOPs at the profile's stated rate.
    """
    experiments = {experiment.configuration_id: experiment for experiment in profile.experiments()}
    runs = {configuration: collection.runs[configuration] for configuration in experiments}
    hours_of = {configuration: [one.device_hours[seed] for seed in one.values] for configuration, one in runs.items()}
    of_family: dict[Hashable, list[float]] = {}
    for configuration, experiment in experiments.items():
        of_family.setdefault(_family(experiment), []).extend(h / _length(experiment) for h in hours_of[configuration])
    to_go, num_unknown = 0.0, 0
    for configuration, experiment in experiments.items():
        left = sum(seed not in runs[configuration].values for seed in collection.seeds)
        known = hours_of[configuration] or [h * _length(experiment) for h in of_family[_family(experiment)]]
        with contextlib.suppress(SpecError):  # the user's own image set is not at hand
            flops = None if known else run_flops(experiment, Resources(), find_flops)
            known = known if flops is None else [profile.hours(flops)]
        if known:
            to_go += left * statistics.fmean(known)
        else:
            num_unknown += left
    spent = sum(hours for one in collection.runs.values() for hours in one.device_hours.values())
    return Cost(spent, to_go, num_unknown, "GPU-hours" if profile.device == "gpu" else "core-hours")


def _family(experiment: Experiment) -> Hashable:
    return experiment.kind, experiment.model, experiment.dataset, experiment.image_size


def _length(experiment: Experiment) -> float:
    """The images seen, in whole training sets; 1 for a measurement."""
    return experiment.recipe.epochs * experiment.train_fraction if experiment.is_trained else 1.0
