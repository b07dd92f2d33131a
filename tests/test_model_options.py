"""The models' options as they are read from the source, against the classes themselves."""

import inspect

import pytest
import torch

from suite.models import registry as build
from suite.spec.model_options import BATCH_NORMED, changed_options, read_options
from suite.training.start import has_batch_norm

BUILDERS = {name: build.find_builder(name) for name in build.list_models()}


def signature(builder):
    """Of a ``partial(Class, option=...)``, by Python's own reading."""
    return inspect.signature(builder).parameters.values()


def test_every_models_defaults_are_those_of_its_builder():
    expected = {
        name: {p.name: p.default for p in signature(builder) if p.default is not inspect.Parameter.empty}
        for name, builder in BUILDERS.items()
    }
    assert {name: dict(options.defaults) for name, options in read_options().items()} == expected


def test_only_options_that_a_family_has_are_said_to_leave_its_flops_as_they_are():
    taken = {}
    for name, options in read_options().items():
        family = taken.setdefault(BUILDERS[name].func.__module__, (options.without_effect_on_flops, set()))
        family[1].update(p.name for p in signature(BUILDERS[name]))
    assert all(said <= of_family for said, of_family in taken.values())


def test_the_models_that_are_said_to_have_batch_norms_are_those_that_have_them():
    with torch.device("meta"):
        normed = [name for name in build.list_models() if has_batch_norm(build.build_model(name, image_size=32))]
    assert normed == list(BATCH_NORMED)


def test_options_at_their_default_are_left_out_and_the_others_stay():
    assert changed_options("vit_t", {"dim": 192, "depth": 3}) == {"depth": 3}
    assert changed_options("vit_s", {"dim": 192}) == {"dim": 192}
    assert changed_options("convit_ti", {"depth": 12, "conv_init": True}, among=["conv_init"]) == {"depth": 12}


def test_an_option_without_a_default_is_refused():
    with pytest.raises(KeyError, match="dimension"):
        changed_options("vit_t", {"dimension": 192})
