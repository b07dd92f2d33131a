"""A run's floating-point operations, computed from those of one image in its model. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from imagesets.catalog import ImageSetInfo
from suite.flops_cache import find_flops
from suite.spec import Experiment

TRAINING = 3  # forward passes that one image costs, the backward one included

Forward = Callable[[str, int, int, Mapping[str, Any]], int | None]
"""(model, number of classes, image side, options) -> FLOPs of one image's forward pass; None if they are not known."""


def known_forward(model: str, num_classes: int, image_size: int, options: Mapping[str, Any]) -> int | None:
    """Look an earlier count up: a ``Forward``.

    Args:
        model: its name.
        num_classes: of its classifier.
        image_size: side of its images, in pixels.
        options: its keyword arguments.
    """
    found = find_flops(model, num_classes, image_size, options)
    return None if found is None else found.total


def run_flops(experiment: Experiment, info: ImageSetInfo, forward: Forward) -> float | None:
    """Add up a whole run: every training image seen, without evaluations; of one that only measures, its evaluation.

    None where the model, or its teacher, is not known.
    """
    per_image = _forward(experiment, info, forward)
    teacher = _teacher(experiment, info, forward)
    if per_image is None or teacher is None:
        return None
    if not experiment.is_trained:
        return float(per_image * info.num_test)
    return (TRAINING * per_image + teacher) * images_seen(experiment, info)


def images_seen(experiment: Experiment, info: ImageSetInfo) -> float:
    """Count the training images of a whole run, with repetitions; 0 where nothing is trained."""
    if not experiment.is_trained:
        return 0.0
    return experiment.recipe.epochs * experiment.train_fraction * info.num_train


def _forward(experiment: Experiment, info: ImageSetInfo, forward: Forward) -> int | None:
    return forward(experiment.model, info.num_classes, experiment.image_size, experiment.model_options)


def _teacher(experiment: Experiment, info: ImageSetInfo, forward: Forward) -> int | None:
    """A teacher answers every training image, and is not trained; of several candidates the first stands for all."""
    if experiment.kind != "distillation":
        return 0
    if experiment.parents:
        return _forward(experiment.parents[0], info, forward)
    return forward(f"timm/{experiment.kind_options['teacher']}", info.num_classes, experiment.image_size, {})
