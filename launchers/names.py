"""What runs are called in tables and messages for people: as short as tells them from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from suite.spec import Experiment, Scalar


def describe(experiments: Sequence[Experiment]) -> dict[str, str]:
    """A name by id for each run of a grid, such as ``vit_t initialization=mimetic 100 % seed 0``.

    Named are the model, what is done with it, the share of the data and the seed; of the rest what differs between the
    grid's runs of that model.
    """
    facts = [_facts(experiment) for experiment in experiments]
    num_runs = Counter(experiment.model for experiment in experiments)
    num_like = Counter(
        (e.model, *fact) for e, found in zip(experiments, facts, strict=True) for fact in found.items()
    )  # fmt: skip
    names = {}
    for experiment, found in zip(experiments, facts, strict=True):
        telling = [f for f in found.items() if num_like[experiment.model, *f] < num_runs[experiment.model]]
        kind = [] if experiment.kind == "training" else [experiment.kind]
        words = [experiment.model, *kind, *(f"{key}={value}" for key, value in telling)]
        names[experiment.id] = f"{' '.join(words)} {100 * experiment.train_fraction:g} % seed {experiment.seed}"
    return names


def _facts(experiment: Experiment) -> dict[str, Scalar]:
    recipe = experiment.recipe
    return {
        "dataset": experiment.dataset,
        **experiment.model_options,
        **experiment.kind_options,
        "learning_rate": recipe.learning_rate,
    }
