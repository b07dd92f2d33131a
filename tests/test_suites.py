"""Every suite at every scale: it expands, all its models can be built and run, and equal experiments are shared."""

import functools

import pytest
import torch

from imagesets.catalog import get_info
from suite.base.errors import SpecError
from suite.models.registry import build_model
from suite.models.structured_init.vit import WITHOUT_EFFECT_ON_FLOPS
from suite.papers import get_suite, list_suites

CASES = [(name, profile) for name in list_suites() for profile in (*get_suite(name).profiles, "smoke")]


RUN = set()


@functools.cache
def check_model(model, num_classes, image_size, options):
    """Built on the meta device, once for all the experiments that train it; run there once for all that start it."""
    of_vits_start = WITHOUT_EFFECT_ON_FLOPS if model.startswith("vit") else ()
    runs_as = (model, num_classes, image_size, tuple(one for one in options if one[0] not in of_vits_start))
    with torch.device("meta"):
        network = build_model(model, num_classes=num_classes, image_size=image_size, **dict(options)).eval()
        if runs_as not in RUN:
            assert network(torch.empty(1, 3, image_size, image_size)).shape == (1, num_classes)
    RUN.add(runs_as)


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_every_experiment_can_be_built_and_comes_after_those_it_needs(name, profile):
    known = set()
    for experiment in get_suite(name).profile(profile).experiments(range(2)):
        assert all(parent.id in known for parent in experiment.parents)
        assert experiment.id not in known
        known.add(experiment.id)
        recipe = experiment.recipe
        assert recipe.warmup_epochs < recipe.epochs
        assert all(0 < milestone < recipe.epochs for milestone in recipe.milestones)
        info = get_info(experiment.dataset)
        if recipe.crop == "pad":
            assert experiment.image_size == info.image_size
        options = dict(experiment.model_options)
        if recipe.drop_path:
            options["drop_path"] = recipe.drop_path
        check_model(experiment.model, info.num_classes, experiment.image_size, tuple(sorted(options.items())))


@pytest.mark.parametrize("name", list_suites())
def test_every_suite_has_the_three_scales_and_says_what_the_smaller_ones_leave_out(name):
    suite = get_suite(name)
    assert set(suite.profiles) - {"desktop"} == {"laptop", "gpu", "paper"}
    papers = {experiment.id for experiment in suite.profiles["paper"].experiments()}
    for profile in suite.profiles.values():
        assert profile.scale_note or {experiment.id for experiment in profile.experiments()} <= papers
    assert not suite.profiles["paper"].scale_note
    assert {experiment.dataset for experiment in suite.profiles["laptop"].experiments()} <= {"cifar10"}


@pytest.mark.parametrize(
    ("name", "times_as_many"),
    [
        ("sample_efficiency", 600_000 / 18_000),
        ("convit_ablation", 125_000 / 24_000),
        ("convit_masking", 125_000 / 24_000),
        ("cordonnier_cifar10", 6),
    ],
)
def test_a_desktop_fills_the_laptop_s_places_with_the_same_models_that_see_five_times_the_images_and_more(
    name, times_as_many
):
    laptop, desktop = (get_suite(name).profile(scale) for scale in ("laptop", "desktop"))
    if name == "convit_ablation":  # the laptop leaves out the column of all images
        kept = tuple(e for e in desktop.entries if "full_data_top1" not in e.columns)
        assert len(kept) == 7
        desktop = desktop.model_copy(update={"entries": kept})
    assert [(e.table, e.row, e.columns) for e in desktop.entries] == [
        (e.table, e.row, e.columns) for e in laptop.entries
    ]
    for small, large in zip(laptop.experiments(), desktop.experiments(), strict=True):
        options = [{k: v for k, v in e.model_options.items() if k != "weight_std"} for e in (small, large)]
        assert (small.model, options[0], small.kind) == (large.model, options[1], large.kind)
        if small.kind == "training":
            seen = [e.train_fraction * e.recipe.epochs for e in (small, large)]
            assert seen[1] / seen[0] == pytest.approx(times_as_many)
            warmup = [e.recipe.warmup_epochs / e.recipe.epochs for e in (small, large)]
            assert warmup[0] == pytest.approx(warmup[1])


def test_suites_share_runs_and_no_two_experiments_share_an_identity():
    distinct, total = {}, 0
    for name in list_suites():
        for profile in get_suite(name).profiles:
            for experiment in get_suite(name).profile(profile).experiments():
                total += 1
                known = distinct.setdefault(experiment.id, experiment)
                fields = {"recipe": {"name"}, "parents": True}
                assert experiment.model_dump(exclude=fields) == known.model_dump(exclude=fields)
    assert len(distinct) < total


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(SpecError, match="Did you mean 'sample_efficiency'"):
        get_suite("sample_eficiency")
    with pytest.raises(SpecError, match="Did you mean 'laptop'"):
        get_suite("sample_efficiency").profile("labtop")


def test_an_image_set_with_a_backslash_is_named_as_it_is():
    assert r"all of it on \1, another image set" in get_suite("convit_cifar100").profile(r"laptop@\1").scale_note
