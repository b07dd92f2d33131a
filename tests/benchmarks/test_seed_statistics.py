"""The short form of the simulations: each rule has the coverage, the size and the power that it is quoted with.

The bounds lie four deviations of so many grids away from the quoted figures.
"""

import numpy as np
import pytest

from benchmarks import seed_statistics as simulated
from benchmarks.seed_statistics import effects

GRIDS = 1500


@pytest.mark.parametrize("shape", simulated.SHAPES)
def test_the_interval_covers_the_truth_in_95_of_100(shape):
    assert 93 < simulated.coverage(effects(GRIDS, 5, sd=(0.5, 1.5), shape=shape)) < 98


def test_the_test_finds_nothing_in_5_of_100_and_a_point_in_two_of_three_by_eight_seeds():
    assert 3 < simulated.found(effects(GRIDS, 8)) < 7.5
    assert 60 < simulated.found(effects(GRIDS, 8, 1.0)) < 71


def test_a_fall_of_the_gain_is_found_on_both_scales_and_not_where_either_is_constant():
    assert simulated.trend(simulated.gains(GRIDS, 8, simulated.falling(3.5, 1.7)))[2] > 95
    for constant in (np.full(5, 3.0), simulated.constant_in_log_odds(3.0)):
        assert simulated.trend(simulated.gains(GRIDS, 12, constant))[2] < 5


def test_of_the_verdicts_of_papers_hardly_any_is_false():
    false, _, power = simulated.papers(150, 8, 0.5)
    assert false < 4.5
    assert power > 60
    assert simulated.papers(150, 8, 1.0)[1] < 12


def test_seeds_until_a_width_keep_95_of_100():
    covered, size, spent = simulated.until(400, 0.5, 0.5)
    assert covered > 92
    assert size < 8
    assert 7 < spent < 14


@pytest.mark.parametrize("looks", [(5, 8), (6, 9)])
def test_two_looks_find_nothing_in_5_of_100(looks):
    assert 3 < simulated.after_a_look(GRIDS, looks, 0.0, simulated.rules.levels(looks)) < 7.5


def test_a_control_on_both_models_biases_nothing():
    assert abs(simulated.controlled(4000, 1.0, on_baseline=False)[0]) < 0.06
    assert simulated.controlled(4000, 1.0, on_baseline=True)[0] > 0.2


def test_ranks_part_seven_models_that_lie_far_apart_and_none_that_are_equal():
    assert simulated.ranks(40, 12.0, 5) == (pytest.approx(99, abs=1), 0)
    assert simulated.ranks(100, 0.0, 5)[1] < 13


def test_a_faithful_reproduction_is_hardly_ever_contradicted_and_one_two_points_short_hardly_ever_reproduced():
    faithful, short = (simulated.cells(GRIDS, by, 5) for by in (0.0, 2.0))
    assert faithful["reproduced"] > 93
    assert faithful["contradicted"] < 1
    assert short["contradicted"] > 90


def test_a_winner_chosen_on_other_seeds_is_not_flattered():
    naive, ours = simulated.selection_bias(4000, 12, 5)
    assert naive > 0.6
    assert abs(ours) < 0.04
