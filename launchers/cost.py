"""What a run will cost in floating-point operations, before it starts. Imports torch only to count a new model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from imagesets.catalog import ImageSetInfo
from imagesets.prepared import find_info
from suite.flops_cache import find_flops, options_that_matter
from suite.spec import Experiment, Resources, Scalar

_TRAINING = 3  # forward passes that one image costs, the backward one included


def run_flops(experiment: Experiment, resources: Resources) -> float:
    """Of a whole run: every training image seen, without evaluations; of one that only measures, its evaluation."""
    info = _find_info(experiment, resources)
    forward = _forward_flops(experiment, info.num_classes)
    if not experiment.is_trained:
        return forward * info.num_test
    return (_TRAINING * forward + _teacher_flops(experiment, info)) * images_seen(experiment, resources)


def images_seen(experiment: Experiment, resources: Resources) -> float:
    """Training images of a whole run, with repetitions; 0 where nothing is trained."""
    if not experiment.is_trained:
        return 0.0
    return experiment.recipe.epochs * experiment.train_fraction * _find_info(experiment, resources).num_train


def _forward_flops(experiment: Experiment, num_classes: int) -> int:
    """Of one image's forward pass through the experiment's model."""
    return _forward(experiment.model, num_classes, experiment.image_size, tuple(experiment.model_options.items()))


def models_to_count(experiments: Iterable[Experiment], resources: Resources) -> list[Experiment]:
    """One experiment of each model whose operations have to be counted first, which takes up to a second each."""
    models = {
        (e.model, e.image_size, e.dataset, options_that_matter(e.model_options)): e for e in experiments
    }  # fmt: skip
    return [
        e
        for e in models.values()
        if find_flops(e.model, _find_info(e, resources).num_classes, e.image_size, e.model_options) is None
    ]


def _teacher_flops(experiment: Experiment, info: ImageSetInfo) -> int:
    """A teacher answers every training image, and is not trained; of several candidates the first stands for all."""
    if experiment.kind != "distillation":
        return 0
    if experiment.parents:
        return _forward_flops(experiment.parents[0], info.num_classes)
    return _forward(f"timm/{experiment.kind_options['teacher']}", info.num_classes, experiment.image_size, ())


@cache
def _forward(model: str, num_classes: int, image_size: int, options: tuple[tuple[str, Scalar], ...]) -> int:
    found = find_flops(model, num_classes, image_size, dict(options))
    if found is None:
        from suite.models.flops import count_flops

        found = count_flops(model, num_classes=num_classes, image_size=image_size, **dict(options))
    return found.total


def _find_info(experiment: Experiment, resources: Resources) -> ImageSetInfo:
    data_dir = Path(resources.data_dir) if resources.data_dir else None
    return find_info(experiment.dataset, data_dir, resources.loader)
