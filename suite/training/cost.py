"""What a whole training costs in floating-point operations."""

from __future__ import annotations

from imagesets.catalog import get_info
from suite.models.flops import count_flops
from suite.spec import Experiment


def training_flops(experiment: Experiment) -> float:
    """Of a whole run: forward and backward (3 forward passes) of every training image seen; no evaluation."""
    num_classes = get_info(experiment.dataset).num_classes
    options = experiment.model_options
    flops = count_flops(experiment.model, num_classes=num_classes, image_size=experiment.image_size, **options)
    return 3.0 * flops.total * images_seen(experiment)


def images_seen(experiment: Experiment) -> float:
    """Training images of a whole run, with repetitions."""
    return experiment.recipe.epochs * experiment.train_fraction * get_info(experiment.dataset).num_train
