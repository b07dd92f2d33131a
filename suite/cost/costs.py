"""The cost of a run: floating-point operations, from those of one image in its model; and hours as text. No torch.

Building a large model takes a second, so that a model is counted once: who asks says by which ``Counter``.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from imagesets.catalog import ImageSetInfo
from suite.cost.known_flops import Flops, find_flops
from suite.spec.experiment import Experiment
from suite.spec.model_options import options_that_matter
from suite.spec.resources import Resources

TRAINING = 3  # forward passes that one image costs, the backward one included


Counter = Callable[..., Flops | None]
"""Returns the FLOPs of a model by its name, as ``find_flops`` and ``suite.models.flops.count_flops`` do."""


def run_flops(experiment: Experiment, resources: Resources, counter: Counter) -> float | None:
    """Add up a whole run: every training image seen, without evaluations; of one that only measures, its evaluation.

    Args:
        resources: resources that name the folder of an image set of the user's own.

    Returns:
        None where the model, or its teacher, is not known to the ``counter``.
    """
    info = _find_info(experiment, resources)
    network, teacher = _count(experiment, info, counter), _count_teacher(experiment, info, counter)
    if network is None or teacher is None:
        return None
    if not experiment.is_trained:
        return float(network.total * info.num_test)
    return (TRAINING * network.total + teacher.total) * images_seen(experiment, resources)


def images_seen(experiment: Experiment, resources: Resources) -> float:
    """Count the training images of a whole run, with repetitions; 0 where nothing is trained."""
    if not experiment.is_trained:
        return 0.0
    return experiment.recipe.epochs * experiment.train_fraction * _find_info(experiment, resources).num_train


def models_to_count(experiments: Iterable[Experiment], resources: Resources) -> list[Experiment]:
    """Find one experiment of each model that was never counted, which takes up to a second each."""
    models = {
        (e.model, e.image_size, e.dataset, options_that_matter(e.model, options_to_count(e))): e for e in experiments
    }
    return [e for e in models.values() if run_flops(e, resources, find_flops) is None]


def write_hours(hours: float) -> str:
    """Write hours to three digits, or whole from 100 on: ``0.0123``, ``4,287``, ``under 0.0001``, ``0``."""
    if 0 < hours < 1e-4:
        return "under 0.0001"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def write_known(amount: float | None) -> str:
    """Write an amount as ``write_hours`` does, or that it is unknown."""
    return "unknown" if amount is None else write_hours(amount)


def _count(experiment: Experiment, info: ImageSetInfo, counter: Counter) -> Flops | None:
    sizes = {"num_classes": info.num_classes, "image_size": experiment.image_size}
    return counter(experiment.model, **sizes, **options_to_count(experiment))


def options_to_count(experiment: Experiment) -> dict[str, Any]:
    """List the keyword arguments by which a ``Counter`` builds an experiment's model."""
    source = experiment.model_source
    return {**experiment.model_options, **({} if source is None else {"model_source": source})}


def _count_teacher(experiment: Experiment, info: ImageSetInfo, counter: Counter) -> Flops | None:
    """A teacher answers every training image, and is not trained; of several candidates the first stands for all."""
    if experiment.kind != "distillation":
        return Flops(total=0, linear=0)
    if experiment.parents:
        return _count(experiment.parents[0], info, counter)
    teacher = f"timm/{experiment.kind_options['teacher']}"
    return counter(teacher, num_classes=info.num_classes, image_size=experiment.image_size)


def _find_info(experiment: Experiment, resources: Resources) -> ImageSetInfo:
    from imagesets.prepared import find_info  # takes a moment

    return find_info(experiment.dataset, Path(resources.data_dir) if resources.data_dir else None)
