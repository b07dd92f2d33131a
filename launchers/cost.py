"""The floating-point operations of a run, before it starts. Imports torch only to count a new model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from imagesets.catalog import ImageSetInfo
from imagesets.prepared import find_info
from suite import costs
from suite.flops_cache import options_that_matter
from suite.spec import Experiment, Resources


def run_flops(experiment: Experiment, resources: Resources) -> float:
    """Of a whole run, see ``suite.costs``; a model that is new is counted."""
    flops = costs.run_flops(experiment, _find_info(experiment, resources), _count_once)
    assert flops is not None
    return flops


def images_seen(experiment: Experiment, resources: Resources) -> float:
    """Training images of a whole run, with repetitions; 0 where nothing is trained."""
    return costs.images_seen(experiment, _find_info(experiment, resources))


def models_to_count(experiments: Iterable[Experiment], resources: Resources) -> list[Experiment]:
    """One experiment of each model whose operations have to be counted first, which takes up to a second each."""
    models = {
        (e.model, e.image_size, e.dataset, options_that_matter(e.model_options)): e for e in experiments
    }  # fmt: skip
    return [e for e in models.values() if costs.run_flops(e, _find_info(e, resources), costs.known_forward) is None]


def _count_once(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> int:
    return _count(model, num_classes, image_size, tuple(options.items()))


@cache
def _count(model: str, num_classes: int, image_size: int, options: tuple[tuple[str, Any], ...]) -> int:
    known = costs.known_forward(model, num_classes, image_size, dict(options))
    if known is not None:
        return known
    from suite.models.flops import count_flops

    return count_flops(model, num_classes=num_classes, image_size=image_size, **dict(options)).total


def _find_info(experiment: Experiment, resources: Resources) -> ImageSetInfo:
    data_dir = Path(resources.data_dir) if resources.data_dir else None
    return find_info(experiment.dataset, data_dir, resources.loader)
