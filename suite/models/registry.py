"""From a model's name to the model: the one way by which training, cost estimates and tests build it."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from torch import nn

from suite.base.errors import SpecError, check_name
from suite.models import cmhsa, deit, resnet
from suite.models.convit import network as convit
from suite.models.cordonnier import network as cordonnier
from suite.models.custom import build_custom
from suite.models.layers import ImageSize
from suite.models.structured_init import convmixer, vit
from suite.spec.custom_model import ModelSource

# family, and the input of its paper: image side in pixels, classes
_FAMILIES: tuple[tuple[dict[str, partial[Any]], int, int], ...] = (
    (deit.MODELS, 224, 1000),
    (convit.MODELS, 224, 1000),
    (cmhsa.MODELS, 224, 100),
    (cordonnier.MODELS, 32, 10),
    (resnet.MODELS, 32, 10),
    (vit.MODELS, 32, 10),
    (convmixer.MODELS, 32, 10),
)
_BUILDERS = {name: builder for models, _, _ in _FAMILIES for name, builder in models.items()}


def list_models() -> list[str]:
    """Names that ``build_model`` knows, sorted. ``python -m suite.models`` prints them with sizes and costs."""
    return sorted(_BUILDERS)


def reference_input(name: str) -> tuple[int, int]:
    """(image side in pixels, classes) at which the model's paper gives its size; 32 and 10 for our micro models."""
    if name.endswith("_micro"):
        return 32, 10
    return next((side, classes) for models, side, classes in _FAMILIES if name in models)


def count_parameters(model: nn.Module) -> int:
    """Trainable or not."""
    return sum(parameter.numel() for parameter in model.parameters())


def build_model(
    name: str,
    *,
    num_classes: int = 1000,
    image_size: ImageSize = 224,
    model_source: ModelSource | None = None,
    **overrides: Any,
) -> nn.Module:
    """Build a freshly initialized model, from torch's global random state.

    Args:
        name: one of ``list_models()``, or any with a ``model_source``.
        num_classes: width of the classifier.
        image_size: side of a square input in pixels, or (height, width).
        model_source: of a model that is none of ours, and is then built for square images.
        overrides: any keyword argument of the model's class, such as ``patch_size=4``.

    Returns:
        A module: images (B, 3, image_size, image_size) -> logits (B, num_classes).

    Raises:
        SpecError (a ValueError): unknown name or override, or sizes that do not fit each other.
    """
    if model_source is not None:
        assert isinstance(image_size, int)
        return build_custom(model_source, num_classes=num_classes, image_size=image_size, **overrides)
    check_name("model", name, _BUILDERS)
    builder = _BUILDERS[name]
    valid = set(inspect.signature(builder.func).parameters) - {"num_classes", "image_size", "self"}
    for key in overrides:
        check_name(f"override of model {name}", key, valid)
    sides = image_size if isinstance(image_size, tuple) else (image_size,)
    for key, value in [("num_classes", num_classes), *(("image_size", side) for side in sides)]:
        if not isinstance(value, int) or value < 1:
            raise SpecError(f"{key} is {value!r}, expected a positive integer")
    return builder(num_classes=num_classes, image_size=image_size, **overrides)
