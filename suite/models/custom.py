"""Custom models: from an experiment's ``ModelSource`` to a network."""

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from suite.base.errors import FOREIGN_ERRORS, SpecError, check_name
from suite.plugins.find_plugin import check_version, load_builder
from suite.spec.custom_model import ModelSource

_FIXED = ("num_classes", "image_size")
_OF_RECIPE = "drop_path"  # passed on to a model that takes it
_STARTS_TRAINED = ("pretrained", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")


def build_custom(source: ModelSource, *, num_classes: int, image_size: int, **options: Any) -> nn.Module:
    """Build a model that is none of ours, freshly initialized from torch's global random state.

    Args:
        image_size: side of a square input in pixels; a model of timm's is told it where it asks.
        options: keyword arguments; the recipe's ``drop_path`` is left out where the model does not take it.

    Raises:
        SpecError: it is not to be had here in that version, does not take an option, breaks, or is no ``nn.Module``.
    """
    if source.kind == "timm":
        return build_timm(source, num_classes, image_size, options)[0]
    builder = load_builder(source)
    given = _check_options(builder, source, options)
    try:
        network = builder(num_classes=num_classes, image_size=image_size, **given)
    except FOREIGN_ERRORS as error:
        raise SpecError(
            f"model {source.name} cannot be built for {num_classes} classes and images of {image_size} pixels"
            f"{f' with {given}' if given else ''}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(network, nn.Module):
        raise SpecError(
            f"model {source.name} builds {type(network).__name__}, expected an nn.Module: make it a subclass, or "
            "a function that returns one"
        )
    return network


def takes_drop_path(source: ModelSource) -> bool:
    """Whether the recipe's stochastic depth reaches the model; timm's are asked when they are built."""
    return source.kind == "timm" or _OF_RECIPE in _names_by_keyword(load_builder(source))[0]


def _names_by_keyword(builder: Callable[..., Any]) -> tuple[set[str], bool]:
    """Names of what a builder takes by keyword, and whether it takes any others, too."""
    parameters = inspect.signature(builder).parameters.values()
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = {parameter.name for parameter in parameters if parameter.kind in by_keyword}
    return names, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def _check_options(builder: Callable[..., Any], source: ModelSource, options: dict[str, Any]) -> dict[str, Any]:
    names, takes_any = _names_by_keyword(builder)
    given = {name: value for name, value in options.items() if name != _OF_RECIPE or name in names}
    if takes_any:
        return given
    if missing := [name for name in _FIXED if name not in names]:
        raise SpecError(f"model {source.name} takes no {missing[0]} by keyword; expected num_classes and image_size")
    for name in given:
        check_name(f"option of model {source.name}", name, names - set(_FIXED))
    return given


def build_timm(
    source: ModelSource, num_classes: int, image_size: int, options: dict[str, Any]
) -> tuple[nn.Module, dict[str, Any]]:
    """Build one of timm's: of what not all of its models take, it gets what it takes.

    Args:
        source, num_classes, image_size, options: arguments of ``build_custom``.

    Returns:
        the network, and the keyword arguments beside ``num_classes`` by which ``timm.create_model`` makes it.
    """
    import timm

    check_version(source)
    if not timm.is_model(source.name):
        near = difflib.get_close_matches(source.name, timm.list_models(), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise SpecError(f"timm has no model {source.name!r}.{hint} `timm.list_models()` has all names.")
    if trained := [name for name in _STARTS_TRAINED if options.get(name)]:
        raise SpecError(f"model {source.name}: {trained[0]} starts from other images; every model starts fresh here")
    offered = {"img_size": image_size, "drop_path_rate": options.get(_OF_RECIPE)}
    offered = {name: value for name, value in offered.items() if value is not None and name not in options}
    given = {name: value for name, value in options.items() if name != _OF_RECIPE}
    while True:
        try:
            network: nn.Module = timm.create_model(source.name, num_classes=num_classes, **offered, **given)
            return network, offered | given
        except Exception as error:
            refused = next((name for name in offered if f"'{name}'" in str(error)), None)
            if not isinstance(error, TypeError) or refused is None:
                raise SpecError(
                    f"timm's {source.name} cannot be built for images of {image_size} pixels"
                    f"{f' with {given}' if given else ''}: {type(error).__name__}: {error}"
                ) from error
            del offered[refused]
