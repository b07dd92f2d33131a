"""From ``--challenger NAME=MODEL [OPTION=VALUE ...]`` to a ``CustomModel``.

mine=my_vit.py:MyViT dim=192 recipe.learning_rate=0.001
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from suite.base.errors import SpecError, check_name
from suite.base.frozen import Scalar
from suite.plugins.entry_points import find_model
from suite.spec.custom_model import NAME, CustomModel
from suite.spec.model_options import read_options
from suite.spec.recipe import Recipe

_RECIPE = "recipe."
_OF_RECIPE = tuple(name for name in Recipe.model_fields if name != "name")
_NOT_OPTIONS = {
    "drop_path": "it is the recipe's: recipe.drop_path=...",
    "num_classes": "the image set says it",
    "image_size": "the suite says it",
}


def parse_custom_model(words: Sequence[str]) -> CustomModel:
    """Read one custom model, and find which version of its model is there; the model itself is not imported.

    Args:
        words: ``NAME=MODEL``, then options of the model or, after ``recipe.``, fields of the recipe.

    Raises:
        SpecError: A word has none of these forms, a name cannot be a column's, or a model is not there.
    """
    name, separator, model = words[0].partition("=")
    if not separator or not model:
        raise SpecError(f"--challenger {words[0]!r}: expected NAME=MODEL first, such as mine=my_vit.py:MyViT")
    if not re.fullmatch(NAME, name):
        raise SpecError(f"custom model {name!r}: expected letters, digits and _, as columns are called by the name")
    options: dict[str, Scalar] = {}
    recipe: dict[str, Scalar] = {}
    for word in words[1:]:
        key, separator, value = word.partition("=")
        if not separator or not key:
            raise SpecError(f"custom model {name}: found {word!r}, expected OPTION=VALUE or recipe.FIELD=VALUE")
        if key.startswith(_RECIPE):
            check_name("field of the recipe", key.removeprefix(_RECIPE), _OF_RECIPE)
            recipe[key.removeprefix(_RECIPE)] = _scalar(value)
        elif key in _NOT_OPTIONS:
            raise SpecError(f"custom model {name}: {key} is no option of a model here: {_NOT_OPTIONS[key]}")
        else:
            options[key] = _scalar(value)
    source = None if model in read_options() else find_model(model)
    return CustomModel(name=name, words=model, source=source, options=options, recipe=recipe)


def _scalar(text: str) -> Scalar:
    """``true``, ``false``, an integer, a number, or else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
