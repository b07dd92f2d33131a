"""From a model's name to the model: the one way by which training, cost estimates and tests build it.

A family is found by its module in ``suite/models/``: ``MODELS`` holds its models, and ``PAPER_INPUT`` the image side in
pixels and the classes of its paper.
"""

import inspect
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from torch import nn

from suite.base.errors import SpecError, check_name
from suite.models.custom import build_custom
from suite.models.layers import ImageSize
from suite.spec.custom_model import ModelSource
from suite.spec.model_options import read_options


def list_models() -> list[str]:
    """Names that ``build_model`` knows, sorted. ``python -m suite.models`` prints them with sizes and costs."""
    return sorted(read_options())


def find_builder(name: str) -> partial[nn.Module]:
    """Find what builds a model: a class, and the options that the model fixes."""
    builder: partial[nn.Module] = _family(name).MODELS[name]
    return builder


def reference_input(name: str) -> tuple[int, int]:
    """(image side in pixels, classes) at which the model's paper gives its size; 32 and 10 for our micro models."""
    if name.endswith("_micro"):
        return 32, 10
    side, classes = _family(name).PAPER_INPUT
    return side, classes


def _family(name: str) -> ModuleType:
    check_name("model", name, read_options())
    return import_module(read_options()[name].module)


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
        name: a name of ``list_models()``, or any with a ``model_source``.
        image_size: side of a square input in pixels, or (height, width).
        model_source: the source of a custom model, which is built for square images.
        overrides: keyword arguments of the model's class, such as ``patch_size=4``.

    Returns:
        A module: images (B, 3, height, width) -> logits (B, num_classes).

    Raises:
        SpecError (a ValueError): unknown name or override, or sizes that do not fit each other.
    """
    if model_source is not None:
        assert isinstance(image_size, int)
        return build_custom(model_source, num_classes=num_classes, image_size=image_size, **overrides)
    builder = find_builder(name)
    valid = set(inspect.signature(builder.func).parameters) - {"num_classes", "image_size", "self"}
    for key in overrides:
        check_name(f"override of model {name}", key, valid)
    sides = image_size if isinstance(image_size, tuple) else (image_size,)
    for key, value in [("num_classes", num_classes), *(("image_size", side) for side in sides)]:
        if not isinstance(value, int) or value < 1:
            raise SpecError(f"{key} is {value!r}, expected a positive integer")
    return builder(num_classes=num_classes, image_size=image_size, **overrides)
