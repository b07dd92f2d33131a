"""The short form of the simulations: each rule has the coverage, the size and the power that it is quoted with.

The bounds lie four deviations of so many grids away from the quoted figures, and every rule that was thrown out
(a bootstrap of ten seeds, ranks by overlapping intervals, a printed number taken for the truth) lies outside.
"""

import pytest

from benchmarks.seed_statistics import (
    cell_verdicts,
    claim_verdicts,
    coverage,
    rejections,
    selection_bias,
    separations,
    sequential_coverage,
)

GRIDS = 1500


@pytest.mark.parametrize("num_seeds", [3, 10])
def test_the_interval_covers_the_truth_in_95_of_100(num_seeds):
    assert 0.93 < coverage("normal", num_seeds, GRIDS) < 0.975


def test_heavy_tails_cost_no_coverage():
    assert coverage("heavy tails (t, 4 degrees)", 10, GRIDS) > 0.93


@pytest.mark.parametrize("deviations", [(1.0, 1.0), (1.0, 3.0), (1.0, 10.0)])
def test_the_test_speaks_of_nothing_in_at_most_5_to_7_of_100_also_at_unequal_deviations(deviations):
    assert 0.015 < rejections((3, 3), deviations, 0.0, GRIDS) < 0.085
    assert 0.015 < rejections((5, 3), deviations, 0.0, GRIDS) < 0.085


def test_five_seeds_find_two_deviations_in_three_of_four():
    assert rejections((5, 5), (1.0, 1.0), 2.0, GRIDS) > 0.70


def test_ranks_part_seven_models_that_lie_far_apart_and_none_that_are_equal():
    told, wrong = separations([12.0 * i for i in range(7)], 3, 60)
    assert (told > 0.95, wrong) == (True, 0)
    assert separations([0.0] * 7, 3, 60)[1] < 0.1


def test_a_faithful_reproduction_is_hardly_ever_contradicted_and_one_two_points_short_hardly_ever_reproduced():
    faithful, short = (cell_verdicts(by, 0.3, 5, GRIDS) for by in (0.0, 2.0))
    assert faithful["reproduced"] > 0.93
    assert faithful["contradicted"] < 0.01
    assert short["contradicted"] > 0.90
    assert cell_verdicts(2.0, 0.3, 2, GRIDS)["reproduced"] < 0.02


def test_a_claim_that_is_not_true_is_reproduced_in_at_most_one_of_forty():
    found = claim_verdicts(0.0, 4.0, 0.5, 5, GRIDS)
    assert found.get("reproduced", 0) + found.get("reproduced, smaller", 0) < 0.045
    assert found["contradicted"] > 0.9
    assert claim_verdicts(4.0, 4.0, 0.5, 5, 200) == {"reproduced": 1.0}
    assert claim_verdicts(1.0, 0.0, 0.5, 5, GRIDS, margin=1.0).get("reproduced", 0) < 0.085  # at the margin: 5 %


def test_seeds_until_a_width_keep_95_of_100():
    covered, spent = sequential_coverage(0.5, 0.5, 30, 400)
    assert covered > 0.93
    assert 8 < spent < 14


def test_a_winner_chosen_on_other_seeds_is_not_flattered():
    naive, ours = selection_bias(12, 5, 4000)
    assert naive > 0.6
    assert abs(ours) < 0.04
