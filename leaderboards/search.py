"""The candidates of one place -> the one that is shown, and what to say of how it was chosen.

It is chosen by its mean accuracy on the test set, as the papers do, which flatters: the leaderboard says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from leaderboards.cells import Search
from leaderboards.usable_runs import UsableRuns
from suite.spec import Experiment


def choose(candidates: Sequence[UsableRuns]) -> tuple[UsableRuns, Search | None]:
    """The candidate with the best mean top-1 accuracy (the first of equals, and the first where none has a result),
    and the search, where there are several."""
    compared = [candidate for candidate in candidates if candidate.values]
    shown = max(compared, key=_accuracy, default=candidates[0])
    if len(candidates) == 1:
        return shown, None
    search = Search(
        chosen=differences([candidate.experiment for candidate in candidates], shown.experiment),
        num_candidates=len(candidates),
        num_compared=len(compared),
        num_done=sum(len(candidate.values) for candidate in candidates),
    )
    return shown, search


def differences(experiments: Sequence[Experiment], chosen: Experiment) -> str:
    """The fields in which the experiments differ, with the values of the chosen one: ``learning_rate=3e-05``."""
    all_fields = [_fields(experiment) for experiment in experiments]
    mine = _fields(chosen)
    names = {name: None for fields in all_fields for name in fields}  # in order
    varied = [name for name in names if len({repr(fields.get(name)) for fields in all_fields}) > 1]
    return ", ".join(f"{name}={mine[name]}" for name in varied if name in mine)


def _accuracy(candidate: UsableRuns) -> float:
    return statistics.fmean(values["top1_percent"] for values in candidate.values.values())


def _fields(experiment: Experiment, prefix: str = "") -> dict[str, Any]:
    """All that identifies an experiment, flat: the recipe's and the model's own fields by their bare names."""
    nested = {"recipe", "model_options", "kind_options", "parents", "seed"}
    found = experiment.model_dump(exclude=nested)
    found |= experiment.recipe.model_dump(exclude={"name"}) | experiment.model_options | experiment.kind_options
    fields = {prefix + name: value for name, value in found.items()}
    for parent in experiment.parents:
        fields |= _fields(parent, f"{prefix}parent's ")
    return fields
