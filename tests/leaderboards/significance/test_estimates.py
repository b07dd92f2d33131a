import math
import subprocess
import sys

import numpy
import pytest
from scipy import stats

from leaderboards.significance.estimates import derive, rank_intervals, single

A, B = [70.0, 71.0, 75.0], [66.0, 66.5, 68.0, 69.5]


def model(values, least_sd=0.0):
    return single(values if isinstance(values, dict) else dict(enumerate(values)), least_sd)


def difference(better, baseline):
    return derive([better, baseline], lambda pair: pair[0] - pair[1])


def gain(pair):
    return 100 * (pair[0] - pair[1]) / pair[1]


def test_fewer_than_three_seeds_have_a_mean_and_no_interval():
    assert (model([]).mean, model([]).interval) == (None, None)
    assert (model([40.0, 42.0]).mean, model([40.0, 42.0]).interval) == (41.0, None)


def test_the_interval_of_a_mean_is_students():
    found = model(A).interval
    expected = stats.t.interval(0.95, 2, loc=numpy.mean(A), scale=stats.sem(A))
    assert (found.low, found.high) == pytest.approx(expected)


def test_two_models_are_compared_by_their_common_seeds_alone():
    found = difference(model(A), model(B))
    expected = stats.ttest_rel(A, B[:3])
    assert (found.mean, found.num_unmatched) == (pytest.approx(numpy.mean(A) - numpy.mean(B[:3])), 1)
    assert found.t_test().p == pytest.approx(expected.pvalue)
    assert found.interval.low == pytest.approx(expected.confidence_interval().low)


def test_models_without_a_common_seed_have_their_difference_and_no_interval():
    found = difference(model({0: 5.0, 1: 6.0}), model({2: 4.0, 3: 8.0}))
    assert (found.mean, found.interval, found.t_test().p, found.num_unmatched) == (-0.5, None, 1.0, 4)


def test_a_relative_gain_is_that_of_the_means_with_an_interval_of_what_each_seed_adds():
    """By the slopes of the gain: 100 / baseline, and -100 better / baseline^2."""
    better, baseline = [50.0, 51.0, 52.0, 50.5], [40.0, 42.0, 44.0, 39.0]
    found = derive([model(better), model(baseline)], gain)
    means = numpy.mean(better), numpy.mean(baseline)
    parts = 100 / means[1] * numpy.array(better) - 100 * means[0] / means[1] ** 2 * numpy.array(baseline)
    assert found.mean == pytest.approx(gain(means))
    assert found.standard_error == pytest.approx(stats.sem(parts))


def test_a_number_over_itself_has_no_interval():
    hours = model([0.5123, 0.6331, 0.4127])
    found = derive([hours, hours], lambda pair: pair[0] / pair[1])
    assert (found.mean, found.interval, found.t_test().p) == (1.0, None, 1.0)


def test_a_number_derived_from_derived_ones_follows_all_their_seeds():
    pairs = [difference(model(A), model(B)), difference(model(B), model(A))]
    found = derive(pairs, lambda both: both[0] - both[1])
    assert found.vector == pytest.approx([2 * (a - b) for a, b in zip(A, B, strict=False)])


def test_equal_seeds_are_believed_only_to_the_accuracys_step():
    step = 0.01  # of 10,000 test images
    found = difference(*(model([70.0] * 3, step / math.sqrt(12)) for _ in "ab"))
    assert found.interval.half_width == pytest.approx(4.302652730 * math.sqrt(2 / 3) * step / math.sqrt(12))
    assert found.t_test().p == 1


def test_what_no_seed_changes_has_no_interval():
    assert model([5.7e6] * 3).interval is None


def test_a_formula_without_a_value_gives_none():
    ratio = lambda pair: pair[0] / pair[1] if pair[1] else None  # noqa: E731
    found = derive([model(A), model([0.0] * 3)], ratio)
    assert (found.mean, found.interval) == (None, None)


# -- ranks

SCATTER = (
    [-0.5, 0.1, 0.4, 0.0, 0.2],
    [0.3, -0.4, 0.0, 0.2, -0.1],
    [0.0, 0.3, -0.5, 0.1, 0.1],
    [0.2, 0.0, 0.1, -0.5, 0.3],
)


@pytest.mark.parametrize(
    ("centers", "ranks"),
    [
        ([50.0, 60.0, 70.0], [(3, 3), (2, 2), (1, 1)]),
        ([50.0, 50.1, 70.0], [(2, 3), (2, 3), (1, 1)]),
        ([50.0, 70.0, 50.1, 70.1], [(3, 4), (1, 2), (3, 4), (1, 2)]),
        ([50.0], [(1, 1)]),
        ([], []),
    ],
)
def test_a_rank_counts_the_significantly_better_and_worse(centers, ranks):
    models = [model([c + shift for shift in SCATTER[i]]) for i, c in enumerate(centers)]
    assert rank_intervals(models) == ranks


def test_two_common_seeds_rank_nothing():
    assert rank_intervals([model({0: 50.0, 1: 50.0, 2: 50.1}), model({1: 70.0, 2: 70.2, 3: 70.1})]) == [(1, 2), (1, 2)]


def test_an_interval_does_not_load_scipys_slow_module_nor_pandas():
    code = (
        "import sys; from leaderboards.significance.estimates import single;"
        "single({0: 1.0, 1: 2.0, 2: 4.0}).interval;"
        "print('scipy.stats' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
