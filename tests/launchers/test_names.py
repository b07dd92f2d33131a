"""Runs are called by what tells them apart."""

import pytest

from launchers.core.run_names import describe
from suite.papers import get_suite, list_suites


def test_a_name_says_what_differs_between_the_runs_of_a_model_and_no_more(graph):
    assert list(describe(list(graph.values())).values()) == [
        "deit_micro 3.75 % seed 0",
        "convit_micro 3.75 % seed 0",
        "deit_micro pruning 3.75 % seed 0",
        "deit_micro masking mask=content 3.75 % seed 0",
        "convit_micro masking mask=content 3.75 % seed 0",
    ]
    searched = [
        graph["first"].model_copy(update={"recipe": graph["first"].recipe.model_copy(update={"learning_rate": rate})})
        for rate in (1e-3, 3e-3)
    ]
    assert [name.split()[1] for name in describe(searched).values()] == ["learning_rate=0.001", "learning_rate=0.003"]


@pytest.mark.parametrize("suite", list_suites())
def test_all_runs_of_a_grid_have_names_of_their_own(suite):
    for profile in (*get_suite(suite).profiles, "smoke"):
        experiments = get_suite(suite).profile(profile).experiments(range(2))
        assert len(set(describe(experiments).values())) == len(experiments)


def test_runs_that_differ_in_what_they_take_over_are_named_by_that(graph):
    parents = [graph["first"].model_copy(update={"image_size": size}) for size in (32, 64)]
    maps = [parents[0].then("maps"), parents[0].then("maps").model_copy(update={"parents": (parents[1],)})]
    assert list(describe(maps).values()) == [
        "deit_micro maps parent.image_size=32 3.75 % seed 0",
        "deit_micro maps parent.image_size=64 3.75 % seed 0",
    ]
