"""What a training costs in floating-point operations, counted on the meta device: nothing is allocated."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from imagesets.catalog import get_info
from suite.models.build import build_model
from suite.spec import Experiment, Scalar


def forward_flops(model: str, num_classes: int, image_size: int, model_options: dict[str, Scalar]) -> int:
    """Floating-point operations of one image's forward pass: 2 per multiply-add, attention included."""
    return _forward_flops(model, num_classes, image_size, tuple(sorted(model_options.items())))


def training_flops(experiment: Experiment) -> float:
    """Of a whole run: forward and backward (3 forward passes) of every training image seen; no evaluation."""
    info = get_info(experiment.dataset)
    forward = forward_flops(experiment.model, info.num_classes, experiment.image_size, experiment.model_options)
    return 3.0 * forward * images_seen(experiment)


def images_seen(experiment: Experiment) -> float:
    """Training images of a whole run, with repetitions."""
    return experiment.recipe.epochs * experiment.train_fraction * get_info(experiment.dataset).num_train


@lru_cache
def _forward_flops(model: str, num_classes: int, image_size: int, options: tuple[tuple[str, Scalar], ...]) -> int:
    with torch.device("meta"), torch.no_grad():
        network = build_model(model, num_classes=num_classes, image_size=image_size, **dict(options))
        images = torch.empty(1, 3, image_size, image_size)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval()(images)
    return int(counter.get_total_flops())
