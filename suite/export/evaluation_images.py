"""How a run's test images were made ready, in timm's words. No torch."""

from __future__ import annotations

from typing import Any

from imagesets.catalog import statistics
from imagesets.prepared import find_info
from suite.spec.experiment import Experiment

INTERPOLATION = "bicubic"


def evaluation_crop(experiment: Experiment) -> float:
    """Return the share of a resized test image's side that is seen: images stored in the network's size, all of it."""
    info = find_info(experiment.dataset)
    have_one_size = info.can_be_fetched or info.packaged  # photographs have many
    return 1.0 if have_one_size and info.image_size == experiment.image_size else experiment.recipe.test_crop


def describe_input(experiment: Experiment) -> dict[str, Any]:
    """The fields of timm's ``pretrained_cfg`` that tell of images and classes."""
    info = find_info(experiment.dataset)
    mean, std = statistics(info, experiment.normalization)
    fields: dict[str, Any] = {
        "num_classes": info.num_classes,
        "input_size": [3, experiment.image_size, experiment.image_size],
        "fixed_input_size": True,
        "interpolation": INTERPOLATION,
        "crop_pct": evaluation_crop(experiment),
        "crop_mode": "center",
        "mean": list(mean),
        "std": list(std),
    }
    return fields | ({"label_names": list(info.class_names)} if info.class_names else {})
