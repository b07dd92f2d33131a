"""The small profiles train as their searches found best, and every method was searched alike."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import search

from suite.papers.cmhsa import recipes as cmhsa
from suite.papers.convit import recipes as convit
from suite.papers.structured_init import recipes as structured_init

SUITES = {"structured_init": search.STRUCTURED_INIT, "cmhsa": search.CMHSA}


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_method_tries_twelve_trainings_on_held_out_images(suite):
    tried = {}
    for entry in suite.profile("laptop").entries:
        for one in entry.candidates:
            tried.setdefault(entry.row, {}).update({each.id: each for each in (one, *one.parents)})
    assert {row: len(of_row) for row, of_row in tried.items()} == dict.fromkeys(tried, 12)
    assert all(one.evaluated_on == "held_out" for of_row in tried.values() for one in of_row.values())


@pytest.mark.parametrize("name", SUITES)
def test_every_method_has_as_many_results(name):
    tried = search.read_tried(name)
    cells = [(entry.row[0], *entry.columns) for entry in SUITES[name].profile("laptop").entries]
    rows = {}
    for method, setting in cells:
        rows.setdefault(method, []).append(sorted(tried[method, setting]))
    for settings in rows.values():
        assert sum(seeds == list(search.SEEDS) for seeds in settings) == 3


def test_chosen_is_the_highest_mean_of_both_seeds():
    tried = {
        ("a", "lucky"): {1000: 60.0, 1001: 50.0},
        ("a", "best"): {1000: 56.0, 1001: 57.0},
        ("a", "once"): {1000: 59.0},
        ("b", "only"): {1000: 1.0, 1001: 1.0},
    }
    assert search.choose(tried) == {"a": "best", "b": "only"}


def shown(experiment):
    """A training by what a search varies, and its phase."""
    recipe, options = experiment.recipe, experiment.model_options
    return experiment.model, options, recipe.learning_rate, recipe.warmup_epochs, recipe.epochs


def found(name):
    """The experiments that a search chose, by method; of two phases also "first"."""
    chosen, cells = search.choose(search.read_tried(name)), SUITES[name].profile("laptop").entries
    best = {entry.row[0]: entry.experiment for entry in cells if chosen[entry.row[0]] in entry.columns}
    for method, experiment in list(best.items()):
        rates = {f"rate {one.recipe.learning_rate:g},": one for one in experiment.parents}
        if rates:
            best[f"{method}: first"] = rates[" ".join(chosen[f"{method}: first"].split()[:2])]
    return {method: shown(experiment) for method, experiment in best.items()}


def test_structured_initialization_trains_as_was_chosen():
    trained = {method: shown(structured_init.laptop_vit(method)) for method in structured_init.METHODS}
    assert trained == found("structured_init")


def test_cmhsa_trains_as_was_chosen():
    laptop = cmhsa.LAPTOP
    trained = {
        "ViT-base": laptop.baseline("base", with_deits_recipe=False),
        "DeiT-small": laptop.baseline("small"),
        "DeiT-base": laptop.baseline("base"),
        "CMHSA-3 (1st phase)": laptop.one_phase("convolution", kernel_size=3),
        "CMHSA-5 (1st phase)": laptop.one_phase("convolution", kernel_size=5),
        "CMHSA (2nd phase)": laptop.one_phase("attention"),
        "CMHSA-3 (both phases)": laptop.two_phases(3),
        "CMHSA-5 (both phases)": laptop.two_phases(5),
        "CMHSA-5 (both phases, no warm-up)": laptop.two_phases(5, with_warmup=False),
        "random attention": laptop.random_attention(True),
        "random attention, no warm-up": laptop.random_attention(False),
    }
    first = {f"{method}: first": one.parents for method, (one,) in trained.items() if one.parents}
    assert {method: shown(one) for method, (one,) in (trained | first).items()} == found("cmhsa")


@pytest.mark.parametrize("family", ["deit", "convit"])
def test_the_desktop_takes_stochastic_depth_only_where_it_serves_both_families(family):
    chosen = search.choose(search.read_tried("drop_path"))
    serves_both = set(chosen.values()) == {"stochastic depth 0.1"}
    assert sorted(chosen) == ["ConViT", "DeiT"]
    assert convit.micro_by_ratios(family).recipe.drop_path == (0.1 if serves_both else 0.0)
