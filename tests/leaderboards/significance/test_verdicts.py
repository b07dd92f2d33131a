import math

import numpy
import pytest
from scipy import stats

from leaderboards.significance.estimates import Sample, difference, single
from leaderboards.significance.power import is_decided, widened
from leaderboards.significance.verdicts import (
    Measured,
    Printed,
    judge_claims,
    judge_table,
    p_value_of_paper,
    seeds_to_hold,
    weakest,
)

SPREAD = numpy.array([-1.0, -0.5, 0.0, 0.5, 1.0])


def model(center, sd=0.3, name="", n=5):
    values = center + sd * SPREAD[:n] / SPREAD[:n].std(ddof=1) - sd * (SPREAD[:n] / SPREAD[:n].std(ddof=1)).mean()
    return single(Sample(dict(enumerate(values)), frozenset({name}) if name else frozenset()))


def effect(size, paper, sd=0.3, n=5, margin=None):
    return Measured(difference(model(70 + size, sd, "a", n), model(70, sd, "b", n)), paper, margin)


# -- a cell and the paper's number


def verdict(center, printed, **fields):
    return judge_table([(model(center, **fields), printed)])[0][0]


@pytest.mark.parametrize(
    ("center", "expected"),
    [(70.0, "reproduced"), (70.6, "reproduced"), (71.5, "contradicted"), (68.5, "contradicted"), (70.9, "undecided")],
)
def test_a_number_is_reproduced_contradicted_or_open(center, expected):
    assert verdict(center, Printed(70.0, 0.05)) == expected


def test_the_papers_seeds_and_rounding_count():
    assert verdict(71.2, Printed(70.0, 0.05, num_seeds=1)) == "contradicted"
    assert verdict(71.2, Printed(70.0, 0.5, num_seeds=1)) == "undecided"  # printed as 70
    assert verdict(70.95, Printed(70.0, 0.05, num_seeds=1)) == "undecided"
    assert verdict(70.95, Printed(70.0, 0.05, num_seeds=20)) == "contradicted"


def test_the_predictive_test_equals_a_hand_computation():
    """Of two normal samples, five seeds and one, of a common deviation that only the first tells."""
    t = (1.2 - 0.05) / (0.3 * math.sqrt(1 / 5 + 1))
    assert p_value_of_paper(model(71.2), Printed(70.0, 0.05)) == pytest.approx(2 * stats.t.sf(t, 4))


def test_one_seed_decides_nothing():
    assert judge_table([(single(Sample({0: 50.0})), Printed(70.0, 0.05))]) == [("undecided", None)]


def test_holm_spares_one_of_many_cells():
    cell = (model(71.2), Printed(70.0, 0.05))
    assert judge_table([cell])[0][0] == "contradicted"
    assert {found for found, _ in judge_table([cell] * 10)} == {"undecided"}


def test_a_fraction_has_its_own_margin():
    cell = single(Sample(dict(enumerate(0.934 + 0.0005 * SPREAD))))
    assert judge_table([(cell, Printed(0.938, 0.0005, margin=0.01))])[0][0] == "reproduced"
    assert judge_table([(cell, Printed(0.96, 0.0005, margin=0.01))])[0][0] == "contradicted"


# -- claims


@pytest.mark.parametrize(
    ("size", "paper", "expected"),
    [
        (4.0, 4.0, "reproduced"),
        (1.0, 4.0, "reproduced, smaller"),
        (1.0, None, "reproduced"),
        (0.2, 4.0, "contradicted"),
        (-3.0, 4.0, "contradicted"),
        (0.2, 0.5, "undecided"),
        (0.2, None, "undecided"),
        (-3.0, None, "contradicted"),
    ],
)
def test_a_claim_of_a_gain_has_its_known_verdict(size, paper, expected):
    assert judge_claims([[effect(size, paper)]])[0][0] == expected


@pytest.mark.parametrize(
    ("size", "sd", "expected"),
    [
        (0.1, 0.3, "reproduced"),
        (0.1, 1.0, "undecided"),
        (0.9, 0.3, "undecided"),
        (2.0, 0.3, "contradicted"),
        (-2.0, 0.3, "contradicted"),
    ],
)
def test_a_claim_of_equality_has_its_known_verdict(size, sd, expected):
    assert judge_claims([[effect(size, 0.0, sd, margin=1.0)]])[0][0] == expected


def test_equality_is_judged_by_two_one_sided_tests():
    found = judge_claims([[effect(0.4, 0.0, 0.3, margin=1.0)]])[0][1]
    groups = [model(center).values for center in (70.4, 71.0)]  # 0.4 from the other arm, against the margin's upper end
    expected = stats.ttest_ind(*(list(group.values()) for group in groups), equal_var=False, alternative="less").pvalue
    assert found == pytest.approx(expected)


def test_a_claim_of_several_effects_holds_where_all_hold():
    good, bad, open_ = effect(4.0, 4.0), effect(-3.0, 4.0), effect(0.2, 0.5)
    assert judge_claims([[good, good]])[0][0] == "reproduced"
    assert judge_claims([[good, bad]])[0][0] == "contradicted"
    assert judge_claims([[good, open_]])[0][0] == "undecided"
    assert weakest([good, bad, open_]) is bad


@pytest.mark.parametrize(("n", "expected"), [(0, "no runs"), (1, "too few seeds"), (4, "too few seeds")])
def test_below_five_seeds_nothing_is_judged(n, expected):
    few = single(Sample(dict(enumerate([74.0, 74.1, 74.2, 74.3][:n])), frozenset({"a"})))
    none = single(Sample({}, frozenset({"b"})))
    assert judge_claims([[Measured(difference(few, none if n == 0 else model(70.0, name="b")), 4.0)]])[0][0] == expected


def test_the_more_claims_a_paper_makes_the_less_one_of_them_is_believed():
    weak = effect(0.55, None)
    assert judge_claims([[weak]])[0][0] == "reproduced"
    assert judge_claims([[weak]] * 10)[0][0] == "undecided"


def test_to_leave_claims_out_decides_none():
    weak, nothing = effect(0.55, None), effect(-0.1, None)
    assert judge_claims([[weak]], 10) == judge_claims([[weak], *[[nothing]] * 9])[:1]
    assert judge_claims([[weak]], 10)[0][0] == "undecided"
    short = effect(-0.55, 0.0)
    assert [judge_claims([[short]], count)[0][0] for count in (1, 10)] == ["contradicted", "undecided"]


def test_a_diverged_seed_leaves_a_claim_undecided():
    values = {0: 74.0, 1: 74.1, 2: 73.9, 3: 74.0, 4: 10.0}
    found = Measured(difference(single(Sample(values, frozenset({"a"}))), model(70.0, name="b")), 4.0)
    assert judge_claims([[found]])[0][0] == "undecided"


# -- power


@pytest.mark.parametrize(("size", "expected"), [(2.0, 6), (1.0, 17), (0.5, 64)])
def test_the_seeds_to_hold_equal_a_textbooks_table(size, expected):
    """Cohen (1988), table 2.4.1: two-sided 5 %, power .80, d = size: 64 for .5, 17 for 1."""
    assert seeds_to_hold(effect(size, 4.0, sd=1.0)) == expected


def test_no_number_of_seeds_finds_an_effect_that_points_the_other_way():
    assert seeds_to_hold(effect(-1.0, 4.0)) is None
    assert seeds_to_hold(effect(2.0, 0.0, margin=1.0)) is None
    assert seeds_to_hold(effect(0.0, 4.0)) is None


def test_equality_at_a_deviation_of_half_the_margin_needs_a_handful_of_seeds():
    needed = seeds_to_hold(effect(0.0, 0.0, sd=0.5, margin=1.0))
    rng, found = numpy.random.default_rng(0), {}
    for n in (needed - 1, needed):
        a, b = rng.normal(0, 0.5, (2, 20_000, n))
        error = numpy.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / n)
        reach = stats.t.isf(0.05, 2 * n - 2)
        found[n] = numpy.mean(numpy.abs(a.mean(axis=1) - b.mean(axis=1)) + reach * error < 1)
    assert found[needed - 1] < 0.82
    assert found[needed] > 0.78


# -- seeds until a headline is known


def test_a_headline_is_decided_by_its_width_and_never_by_zero():
    wide, narrow = effect(50.0, 4.0, sd=3.0).estimate, effect(0.0, 4.0, sd=0.2).estimate
    assert not is_decided(wide, 0.5)
    assert is_decided(narrow, 0.5)
    assert widened(narrow).half_width == pytest.approx(1.15 * narrow.interval.half_width)


def test_fewer_than_five_seeds_decide_nothing():
    assert not is_decided(effect(0.0, 4.0, sd=0.01, n=4).estimate, 0.5)
    assert not is_decided(difference(single(Sample({})), single(Sample({}))), 0.5)
