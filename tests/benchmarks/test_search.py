"""The small profiles train as their searches found best, and every method was searched alike."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import search

from suite.papers.cmhsa import recipes as cmhsa
from suite.papers.structured_init import recipes as structured_init

SUITES = {"structured_init": search.STRUCTURED_INIT, "cmhsa": search.CMHSA}


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_method_tries_twelve_trainings_on_held_out_images(suite):
    tried = {}
    for entry in suite.profile("laptop").entries:
        for one in entry.candidates:
            tried.setdefault(entry.row, set()).update((one, *one.parents))
    assert {row: len(of_row) for row, of_row in tried.items()} == dict.fromkeys(tried, 12)
    assert all(one.evaluated_on == "held_out" for of_row in tried.values() for one in of_row)


@pytest.mark.parametrize("name", SUITES)
def test_every_method_has_as_many_results(name):
    tried = search.read_tried(name)
    rows = {}
    for (method, _), of_seed in tried.items():
        rows.setdefault(method, []).append(sorted(of_seed))
    for settings in rows.values():
        assert sum(seeds == list(search.SEEDS) for seeds in settings) == 3
    cells = {(entry.row[0], *entry.columns) for entry in SUITES[name].profile("laptop").entries}
    assert set(tried) == cells


def test_chosen_is_the_highest_mean_of_both_seeds():
    tried = {
        ("a", "lucky"): {1000: 60.0, 1001: 50.0},
        ("a", "best"): {1000: 56.0, 1001: 57.0},
        ("a", "once"): {1000: 59.0},
        ("b", "only"): {1000: 1.0, 1001: 1.0},
    }
    assert search.choose(tried) == {"a": "best", "b": "only"}


def test_structured_initialization_trains_as_was_chosen():
    chosen = search.choose(search.read_tried("structured_init"))
    assert {method: search.describe(setting) for method, setting in structured_init.TUNED.items()} == chosen


def test_cmhsa_trains_as_was_chosen():
    chosen = search.choose(search.read_tried("cmhsa"))
    rows = {row: found for row, _, found in search.cmhsa_cells({"tuned": cmhsa.LAPTOP})}
    assert set(rows) == set(chosen)
