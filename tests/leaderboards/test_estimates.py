import math
import subprocess
import sys

import numpy
import pytest
from scipy import stats

from leaderboards.estimates import interval, p_value_below, shared_ranks

SKEWED = [90.0, 91.5, 92.0, 92.25, 92.5, 92.5, 92.75, 93.0, 93.0, 93.25]


def test_one_value_has_no_interval():
    assert interval([]) is None
    assert interval([40.0]) is None


def test_the_interval_of_three_values_equals_a_hand_computation():
    found = interval([70.0, 71.0, 75.0])
    half_width = 4.302652729911275 * (7 / 3) ** 0.5  # t of 2 degrees, from a printed table; (4 + 1 + 9) / 2 = 7
    assert found.sd == pytest.approx(7**0.5)
    assert (found.low, found.high) == pytest.approx((72 - half_width, 72 + half_width))


@pytest.mark.parametrize("n", [2, 5, 9])
def test_below_ten_values_the_interval_is_students(n):
    values = SKEWED[:n]
    found = interval(values)
    expected = stats.t.interval(0.95, n - 1, loc=numpy.mean(values), scale=stats.sem(values))
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(expected)


def test_from_ten_values_on_the_interval_is_the_bootstraps_and_leans_with_the_data():
    found = interval(SKEWED)
    expected = stats.bootstrap((SKEWED,), numpy.mean, n_resamples=99_999, rng=1, method="BCa").confidence_interval
    assert found.method == "bca"
    assert (found.low, found.high) == pytest.approx(expected, abs=0.05)
    mean = numpy.mean(SKEWED)
    assert mean - found.low > found.high - mean


def test_the_bootstrap_gives_the_same_interval_every_time():
    assert interval(SKEWED) == interval(SKEWED)


@pytest.mark.parametrize("n", [2, 9, 10, 30])
def test_equal_values_have_an_interval_of_width_zero(n):
    found = interval([93.5] * n)
    assert (found.sd, found.low, found.high) == (0, 93.5, 93.5)


def test_one_outlier_among_equal_values_gives_a_finite_interval():
    found = interval([93.0] * 11 + [10.0])
    assert math.isfinite(found.low)
    assert found.low < found.high


def test_the_test_against_the_paper_equals_a_hand_computation():
    # mean 72, standard error (7/3)^0.5; t = -3 / 1.5275 = -1.964 at 2 degrees, one-sided: (1 + t / (t^2 + 2)^0.5) / 2
    t = -3 / (7 / 3) ** 0.5
    assert p_value_below([70.0, 71.0, 75.0], 75.0) == pytest.approx((1 + t / (t * t + 2) ** 0.5) / 2)
    assert p_value_below([70.0, 71.0, 75.0], 72.0) == pytest.approx(0.5)
    assert p_value_below([70.0], 72.0) is None


@pytest.mark.parametrize(("paper", "p_value"), [(71.0, 0.0), (70.0, 1.0), (69.0, 1.0)])
def test_equal_values_are_below_the_paper_or_not(paper, p_value):
    assert p_value_below([70.0, 70.0], paper) == p_value


@pytest.mark.parametrize(
    ("intervals", "ranks"),
    [
        ([], []),
        ([(1, 2), (3, 4)], [2, 1]),
        ([(1, 2), (2, 3)], [1, 1]),  # touching is overlapping
        ([(5, 6), (1, 2), (5.5, 7), (0, 0.5)], [1, 3, 1, 4]),  # two share the first place: none is second
        ([(0, 2), (1.5, 4), (3.5, 6), (7, 8)], [2, 2, 2, 1]),  # the ends of a chain do not overlap
        ([(0, 10), (8, 9), (1, 2), (-2, -1)], [1, 1, 1, 4]),  # one that spans others joins them
        ([(1, 1), (1, 1)], [1, 1]),
    ],
)
def test_intervals_that_overlap_share_a_rank(intervals, ranks):
    assert shared_ranks(intervals) == ranks


def test_a_few_seeds_do_not_load_scipys_slow_module():
    code = "import sys, leaderboards.estimates as e; e.interval([1, 2]); print('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
