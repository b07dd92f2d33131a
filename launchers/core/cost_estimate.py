"""The cost of a run, estimated before it starts. Imports torch only to count a new model."""

from typing import Any

from suite.base.errors import FOREIGN_ERRORS, SpecError
from suite.cost import costs
from suite.cost.known_flops import Flops, find_flops
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources


def count_run_flops(experiment: Experiment, resources: Resources) -> float:
    """Operations of a whole run, see ``suite.cost.costs``; a model that is new is counted."""
    flops = costs.run_flops(experiment, resources, count_flops)
    assert flops is not None
    return flops


def count_flops(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops:
    """Operations of one image's forward pass; ``suite.models.flops`` is not imported for a model that is known."""
    known = find_flops(model, num_classes=num_classes, image_size=image_size, **options)
    if known is not None:
        return known
    from suite.models import flops

    try:
        return flops.count_flops(model, num_classes=num_classes, image_size=image_size, **options)
    except FOREIGN_ERRORS as error:
        if "model_source" not in options or isinstance(error, SpecError):
            raise
        what = f"its operations cannot be counted: {type(error).__name__}: {error}"
        raise SpecError(f"model {model}: {what}. Correct it, and try it with --check.") from error
