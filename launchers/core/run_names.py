"""Names of runs in tables and messages for people: as short as tells them from each other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from suite.spec.experiment import Experiment, flat_fields

Facts = dict[str, Any]


def describe(experiments: Sequence[Experiment]) -> dict[str, str]:
    """A name by id for each run of a grid, such as ``vit_t initialization=mimetic 100 % seed 0``.

    Named are the model, what is done with it, the share of the data and the seed; of the data set, the options and the
    learning rate what differs between the grid's runs of that model; of the rest what differs between runs that would
    have the same name without it.
    """
    distinguishing = _distinguish(experiments, _facts, lambda experiment: experiment.model)
    short = {experiment.id: _name(experiment, distinguishing[experiment.id]) for experiment in experiments}
    rest = _distinguish(experiments, lambda e: flat_fields(e, "parent."), lambda e: short[e.id])
    return {e.id: _name(e, distinguishing[e.id] | rest[e.id]) for e in experiments}


def _name(experiment: Experiment, distinguishing: Facts) -> str:
    kind = [] if experiment.kind == "training" else [experiment.kind]
    words = [experiment.model, *kind, *(f"{key}={value}" for key, value in distinguishing.items())]
    return f"{' '.join(words)} {100 * experiment.train_fraction:g} % seed {experiment.seed}"


def _distinguish(
    experiments: Sequence[Experiment], facts_of: Callable[[Experiment], Facts], group_of: Callable[[Experiment], str]
) -> dict[str, Facts]:
    """By id, those of an experiment's facts that not all experiments of its group share."""
    groups: dict[str, list[Experiment]] = defaultdict(list)
    for experiment in experiments:
        groups[group_of(experiment)].append(experiment)
    distinguishing: dict[str, Facts] = {}
    for group in groups.values():
        facts = {experiment.id: facts_of(experiment) for experiment in group}
        num_like = Counter(fact for found in facts.values() for fact in found.items())
        for name, found in facts.items():
            distinguishing[name] = {key: value for key, value in found.items() if num_like[key, value] < len(facts)}
    return distinguishing


def _facts(experiment: Experiment) -> Facts:
    options = {**experiment.model_options, **experiment.kind_options}
    return {"dataset": experiment.dataset, **options, "learning_rate": experiment.recipe.learning_rate}
