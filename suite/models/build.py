"""From a model's name to the model: the one way by which training, cost estimates and tests build it."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from torch import nn

from suite.errors import SpecError, unknown_name
from suite.models import convit, deit

_BUILDERS: dict[str, partial[Any]] = {**deit.MODELS, **convit.MODELS}


def list_models() -> list[str]:
    """Names that ``build_model`` knows, sorted."""
    return sorted(_BUILDERS)


def build_model(name: str, *, num_classes: int = 1000, image_size: int = 224, **overrides: Any) -> nn.Module:
    """Build a freshly initialized model, from torch's global random state.

    Args:
        name: one of ``list_models()``.
        num_classes: width of the classifier.
        image_size: side of the square input in pixels.
        overrides: any keyword argument of the model's class, such as ``patch_size=4``.

    Returns:
        A module: images (B, 3, image_size, image_size) -> logits (B, num_classes).

    Raises:
        SpecError (a ValueError): unknown name or override, or sizes that do not fit each other.
    """
    if name not in _BUILDERS:
        raise unknown_name("model", name, _BUILDERS)
    builder = _BUILDERS[name]
    valid = set(inspect.signature(builder.func).parameters) - {"num_classes", "image_size", "self"}
    for key in overrides:
        if key not in valid:
            raise unknown_name(f"override of model {name}", key, valid)
    for key, value in {"num_classes": num_classes, "image_size": image_size}.items():
        if not isinstance(value, int) or value < 1:
            raise SpecError(f"{key} is {value!r}, expected a positive integer")
    return builder(num_classes=num_classes, image_size=image_size, **overrides)
