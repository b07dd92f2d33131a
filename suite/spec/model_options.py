"""The models' keyword arguments, read from the models' source: no torch, so that planning starts at once.

A family is a module in ``suite/models/`` with ``MODELS``, which names its models and what each fixes. The signature of
the class has the other defaults, and ``WITHOUT_EFFECT_ON_FLOPS`` lists options that say how a model starts or is
trained, and leave the forward pass as it is.
"""

import ast
import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from suite.base.frozen import Scalar

BATCH_NORMED = ("convmixer", "resnet18_cifar")  # models whose outputs depend on how many images they see at once

_SOURCES = Path(__file__).parents[1] / "models"


@dataclass(frozen=True)
class ModelOptions:
    """One model's keyword arguments beside ``num_classes`` and ``image_size``, with the values that it takes by
    default."""

    module: str
    defaults: Mapping[str, Scalar | None]
    without_effect_on_flops: frozenset[str]


@lru_cache
def read_options() -> dict[str, ModelOptions]:
    """Options of every model of ours, by its name."""
    found: dict[str, ModelOptions] = {}
    for path in sorted(_SOURCES.rglob("*.py")):
        if b"\nMODELS" in (source := path.read_bytes()):  # the others hold layers
            parts = path.relative_to(_SOURCES).with_suffix("").parts
            found |= _read_family(".".join(("suite.models", *parts)), ast.parse(source))
    return found


def changed_options(
    model: str, options: Mapping[str, Scalar], among: Collection[str] | None = None
) -> dict[str, Scalar]:
    """Leave out options, ``among`` these or all, that are at the model's default: a configuration is one experiment in
    whichever way it is written."""
    defaults = read_options()[model].defaults
    return {
        name: value
        for name, value in options.items()
        if (among is not None and name not in among) or value != defaults[name]
    }


def without_defaults(options: Mapping[str, Scalar], defaults: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
    """Options that differ from the defaults in value or type: a model of others may tell 1, 1.0 and true apart."""
    return {
        name: value
        for name, value in options.items()
        if name not in defaults or (type(value), value) != (type(defaults[name]), defaults[name])
    }


def options_that_matter(model: str, options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Sort a model's options and leave out those without effect on its operations; timm's models have none."""
    known = read_options().get(model)
    without_effect = known.without_effect_on_flops if known is not None else ()
    return tuple(sorted((name, value) for name, value in options.items() if name not in without_effect))


@lru_cache
def digest_of_sources() -> str:
    """A SHA-256 of the models' own source: of whatever is computed from a model, and kept."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_SOURCES.rglob("*.py")))).hexdigest()


def _read_family(module: str, tree: ast.Module) -> Iterator[tuple[str, ModelOptions]]:
    constants = dict(_assignments(tree))
    models, without_effect = constants["MODELS"], constants.get("WITHOUT_EFFECT_ON_FLOPS", ast.Tuple([]))
    assert isinstance(models, ast.Dict)
    methods = ((one.name, node) for one in tree.body if isinstance(one, ast.ClassDef) for node in one.body)
    starts = {name: m.args for name, m in methods if isinstance(m, ast.FunctionDef) and m.name == "__init__"}
    for name, builder in zip(models.keys, models.values, strict=True):
        assert name is not None
        assert isinstance(builder, ast.Call)  # partial(Class, option=...)
        assert isinstance(builder.args[0], ast.Name)
        fixed = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in builder.keywords}
        defaults = {**_literal_defaults(starts[builder.args[0].id]), **fixed}
        yield ast.literal_eval(name), ModelOptions(module, defaults, frozenset(ast.literal_eval(without_effect)))


@lru_cache
def defaults_in(text: str, attribute: str) -> dict[str, Scalar | None]:
    """Read the defaults of what a text defines as ``attribute``: a function's, or those of a class's own ``__init__``.

    Only literals are found, and none where a decorator or a later line may have changed what is called.
    """
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        match [node for node in ast.parse(text).body if attribute in _names_bound(node)]:
            case [ast.ClassDef(keywords=[], decorator_list=[], body=body)]:
                found = [node for node in body if {"__init__", "__new__"}.intersection(_names_bound(node))]
            case found:
                pass
        match found:
            case [ast.FunctionDef(decorator_list=[], args=arguments)]:
                return _literal_defaults(arguments)
    return {}


def _names_bound(node: ast.AST) -> set[str]:
    nodes = [node] if isinstance(node, ast.ClassDef | ast.FunctionDef) else ast.walk(node)
    bound = (found for found in nodes if not isinstance(getattr(found, "ctx", None), ast.Load))
    return {found.id if isinstance(found, ast.Name) else getattr(found, "name", "") for found in bound}


def _literal_defaults(of: ast.arguments) -> dict[str, Scalar | None]:
    arguments = [*of.posonlyargs, *of.args]
    by_place = zip(reversed(arguments), reversed(of.defaults), strict=False)
    found: dict[str, Scalar | None] = {}
    for argument, default in [*by_place, *zip(of.kwonlyargs, of.kw_defaults, strict=True)]:
        with contextlib.suppress(ValueError, TypeError):
            if default is not None:
                found[argument.arg] = ast.literal_eval(default)
    return found


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
