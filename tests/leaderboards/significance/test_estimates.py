import math
import subprocess
import sys

import numpy
import pytest
from scipy import stats

from leaderboards.significance.estimates import (
    Sample,
    derive,
    difference,
    holm,
    interval,
    p_value,
    rank_intervals,
    single,
)

A, B = [70.0, 71.0, 75.0], [66.0, 66.5, 68.0, 69.5]
SKEWED = [90.0, 91.5, 92.0, 92.25, 92.5, 92.5, 92.75, 93.0, 93.0, 93.25]


def model(values, name="", **fields):
    found = values if isinstance(values, dict) else dict(enumerate(values))
    return single(Sample(found, frozenset({name} if name else ()), **fields))


def gain(pair):
    return 100 * (pair[0] - pair[1]) / pair[1]


def test_one_seed_has_a_mean_and_no_interval():
    assert (model([]).mean, model([]).interval) == (None, None)
    assert (model([40.0]).mean, model([40.0]).interval) == (40.0, None)


@pytest.mark.parametrize("n", [2, 5, 9, 10])
def test_the_interval_is_students_at_every_number_of_seeds(n):
    values = SKEWED[:n]
    found = model(values).interval
    expected = stats.t.interval(0.95, n - 1, loc=numpy.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)


def test_the_test_of_two_models_is_welchs_over_all_seeds_of_both():
    found = difference(model(A, "a"), model(B, "b"))
    expected = stats.ttest_ind(A, B, equal_var=False)
    reach = expected.confidence_interval(0.95)
    assert found.mean == pytest.approx(numpy.mean(A) - numpy.mean(B))
    assert p_value(found) == pytest.approx(expected.pvalue)
    assert (found.interval.low, found.interval.high) == pytest.approx((reach.low, reach.high))
    assert found.degrees_of_freedom == pytest.approx(expected.df)
    assert found.sizes == (3, 4)


def test_numbers_of_the_same_networks_are_paired_by_seed():
    masked = [value - 10 - shift for value, shift in zip(A, (0.0, 0.5, 0.25), strict=True)]
    found = difference(model(A, "a"), model(masked, "a"))
    assert p_value(found) == pytest.approx(stats.ttest_rel(A, masked).pvalue)


def test_a_common_parent_pairs_too_also_through_another_sample():
    chain = [single(Sample({0: 1.0, 1: 2.0}, frozenset(names))) for names in ({"a"}, {"a", "b"}, {"b"})]
    assert derive(chain, sum).sizes == (2,)
    assert derive([chain[0], chain[2]], sum).sizes == (2, 2)


def test_paired_numbers_come_from_their_common_seeds_alone():
    found = difference(model({0: 5.0, 1: 6.0, 2: 9.0}, "a"), model({1: 4.0, 2: 8.0, 3: 0.0}, "a"))
    assert found.mean == pytest.approx(1.5)  # of 6 - 4 and 9 - 8
    assert found.interval.half_width == pytest.approx(12.706204736 * 0.5)
    assert (found.sizes, found.num_unmatched) == ((2,), 2)


def test_paired_numbers_without_a_common_seed_have_no_interval():
    found = difference(model({0: 5.0, 1: 6.0}, "a"), model({2: 4.0, 3: 8.0}, "a"))
    assert (found.mean, found.interval, p_value(found), found.num_unmatched) == (-0.5, None, None, 4)


def test_a_relative_gains_interval_covers_a_simulation_of_it():
    """The delta method beside the quantiles of two million gains with the true deviations."""
    better, baseline = [50.0, 51.0, 52.0] * 20, [40.0, 42.0, 44.0] * 20
    found = derive([model(better, "a"), model(baseline, "b")], gain)
    rng = numpy.random.default_rng(0)
    means = [numpy.mean(v) + stats.sem(v) * rng.normal(size=2_000_000) for v in (better, baseline)]
    expected = numpy.quantile(gain(means), [0.025, 0.975])
    assert found.mean == pytest.approx(gain([51.0, 42.0]))
    assert (found.interval.low, found.interval.high) == pytest.approx(expected, abs=0.04)


def test_a_number_over_itself_has_no_interval():
    hours = model([0.5123, 0.6331, 0.4127], "baseline")
    found = derive([hours, hours], lambda pair: pair[0] / pair[1])
    assert (found.mean, found.interval, p_value(found)) == (1.0, None, None)


def test_a_number_derived_from_derived_ones_follows_all_their_seeds():
    pairs = [difference(model(A, "a"), model(B, "b")), difference(model(B[:3], "c"), model(A, "d"))]
    found = derive(pairs, lambda both: both[0] - both[1])
    error = math.sqrt(3 * stats.sem(A) ** 2 - stats.sem(A) ** 2 + stats.sem(B) ** 2 + stats.sem(B[:3]) ** 2)
    assert found.mean == pytest.approx((72 - 67.5) - (numpy.mean(B[:3]) - 72))
    assert found.standard_error == pytest.approx(error)


def test_equal_seeds_are_believed_only_to_the_accuracys_step():
    step = 0.01  # of 10,000 test images
    found = difference(*(model([70.0] * 3, name, least_sd=step / math.sqrt(12)) for name in "ab"))
    assert found.interval.half_width == pytest.approx(2.776445105 * math.sqrt(2 / 3) * step / math.sqrt(12))
    assert p_value(found) == 1
    assert 0 < p_value(found, 0.5) < 1e-3


def test_what_no_seed_changes_has_no_interval():
    assert model([5.7e6] * 3).interval is None


def test_a_formula_without_a_value_gives_none():
    ratio = lambda pair: pair[0] / pair[1] if pair[1] else None  # noqa: E731
    found = derive([model(A, "a"), model([0.0, 0.0], "b")], ratio)
    assert (found.mean, found.interval) == (None, None)


def test_holm_equals_a_hand_computation():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.01, 0.04], num_tests=4) == pytest.approx([0.04, 0.12])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_another_confidence_gives_another_interval():
    assert interval(model(A), 0.90).half_width == pytest.approx(2.91998558 * stats.sem(A))


@pytest.mark.parametrize(
    ("centers", "ranks"),
    [
        ([1.0, 50.0, 30.0], [(3, 3), (1, 1), (2, 2)]),
        ([50.0, 50.1, 30.0], [(1, 2), (1, 2), (3, 3)]),
        ([50.0], [(1, 1)]),
        ([], []),
    ],
)
def test_a_rank_counts_the_significantly_better_and_worse(centers, ranks):
    models = [model([c - 0.5, c, c + 0.5], str(i)) for i, c in enumerate(centers)]
    assert rank_intervals(models) == ranks


def test_a_chain_of_neighbours_does_not_pull_the_ends_together():
    models = [model([c - 1, c, c + 1, c - 1, c + 1], str(c)) for c in (0.0, 1.4, 2.8)]
    assert rank_intervals(models) == [(2, 3), (1, 3), (1, 2)]


def test_an_interval_does_not_load_scipys_slow_module():
    code = (
        "import sys; from leaderboards.significance.estimates import Sample, single;"
        "single(Sample({0: 1.0, 1: 2.0})).interval;"
        "print('scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
