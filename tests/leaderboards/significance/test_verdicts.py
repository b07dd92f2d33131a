import math

import numpy
import pytest
from scipy import stats

from leaderboards.significance.estimates import single
from leaderboards.significance.power import is_decided, widened
from leaderboards.significance.verdicts import Measured, Printed, Question, judge_claims, judge_table, p_value_of_paper

SPREAD = numpy.array([-1.0, -0.5, 0.0, 0.5, 1.0]) / numpy.std([-1.0, -0.5, 0.0, 0.5, 1.0], ddof=1)


def model(center, sd=0.3):
    return single(dict(enumerate(center + sd * SPREAD)))


def effect(size, sd=0.3, **fields):
    return Measured(model(size, sd), **fields)


def question(*effects, name="a_claim", **fields):
    return Question(name, effects, **fields)


def verdicts(*questions):
    return [judged.verdict for judged in judge_claims(questions)]


# -- a cell and the paper's number


def verdict(center, printed):
    return judge_table([(model(center), printed)])[0][0]


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
    assert judge_table([(single({0: 50.0}), Printed(70.0, 0.05))]) == [("undecided", None)]


def test_a_fraction_has_its_own_margin():
    cell = single(dict(enumerate(0.934 + 0.0004 * SPREAD)))
    assert judge_table([(cell, Printed(0.938, 0.0005, margin=0.01))])[0][0] == "reproduced"
    assert judge_table([(cell, Printed(0.96, 0.0005, margin=0.01))])[0][0] == "contradicted"


# -- a claim away from the paper's scale


@pytest.mark.parametrize("paper", [None, 0.1, 4.0, 40.0])
@pytest.mark.parametrize(
    ("size", "expected"),
    [(4.0, "same direction"), (0.5, "same direction"), (0.2, "unresolved"), (-0.5, "opposite direction")],
)
def test_away_from_the_papers_scale_its_size_decides_nothing(paper, size, expected):
    assert verdicts(question(effect(size, paper=paper))) == [expected]


@pytest.mark.parametrize(
    ("relation", "size", "sd", "expected"),
    [
        ("equal", 0.1, 0.3, "same direction"),
        ("equal", 0.1, 1.0, "unresolved"),
        ("equal", 0.9, 0.3, "unresolved"),
        ("equal", 2.0, 0.3, "opposite direction"),
        ("equal", -2.0, 0.3, "opposite direction"),
        ("no worse", 2.0, 0.3, "same direction"),
        ("no worse", -0.5, 0.3, "same direction"),
        ("no worse", -0.9, 0.3, "unresolved"),
        ("no worse", -1.5, 0.3, "opposite direction"),
    ],
)
def test_equal_and_no_worse_are_judged_by_their_margin_of_a_point(relation, size, sd, expected):
    assert verdicts(question(effect(size, sd, relation=relation, margin=1.0))) == [expected]


def test_a_claim_of_several_effects_holds_where_all_hold_and_fails_where_one_points_the_other_way():
    good, bad, open_ = effect(4.0), effect(-3.0), effect(0.2)
    assert verdicts(question(good, good), question(good, bad), question(good, open_)) == [
        "same direction", "opposite direction", "unresolved"
    ]  # fmt: skip
    assert [part.passes for part in (good, bad, open_)] == [True, False, False]
    assert [part.points_the_other_way for part in (good, bad, open_)] == [False, True, False]


def test_the_effect_that_is_shown_and_the_p_are_of_one_comparison():
    good, weak, bad = effect(4.0), effect(0.5), effect(-3.0)
    assert question(good, weak).deciding == (weak, pytest.approx(stats.ttest_1samp(weak.estimate.vector, 0).pvalue))
    assert question(good, bad).deciding == (bad, pytest.approx(stats.ttest_1samp(bad.estimate.vector, 0).pvalue))


def test_below_five_seeds_nothing_is_judged():
    four = Measured(single(dict(enumerate([4.0, 4.1, 4.2, 4.3]))))
    assert verdicts(question(four), question(Measured(single({})))) == ["too few seeds", "no runs"]


def test_what_is_settled_or_primary_or_cannot_be_tested_is_no_part_of_the_family():
    late = effect(0.55, why_untestable="Read late.")
    others = [question(effect(9.0), settled="failed runs"), question(late), question(effect(-0.01), is_primary=True)]
    found = judge_claims([question(effect(0.55)), *others])
    assert [judged.verdict for judged in found[1:]] == ["failed runs", "not testable here", "unresolved"]
    assert (found[0].num_tests, found[0].adjusted) == (1, found[0].p)


def test_a_testable_part_refutes_a_claim_whose_other_part_is_not_testable():
    untestable = effect(4.0, why_untestable="Read late.")
    assert verdicts(question(untestable, effect(4.0)), question(untestable, effect(-4.0))) == [
        "not testable here", "opposite direction"
    ]  # fmt: skip


def test_the_more_claims_say_nothing_the_less_one_of_them_is_believed():
    weak, nothing = question(effect(0.55)), question(effect(0.01))
    assert verdicts(weak) == ["same direction"]
    assert verdicts(weak, *[nothing] * 9)[0] == "unresolved"
    assert verdicts(*[weak] * 10) == ["same direction"] * 10  # Benjamini's and Hochberg's, not Holm's


def test_a_primary_claim_is_tested_by_itself_and_the_next_only_after_it():
    for size, expected in ((0.55, ["same direction", "same direction"]), (0.1, ["unresolved", "unresolved"])):
        first = question(effect(size), name="first", is_primary=True)
        second = question(effect(9.0), name="second", is_primary=True, after="first")
        assert verdicts(first, second, *[question(effect(0.01))] * 9)[:2] == expected


# -- a claim at the paper's scale


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
def test_at_the_papers_scale_half_of_its_effect_decides(size, paper, expected):
    assert verdicts(question(effect(size, paper=paper, is_at_papers_scale=True))) == [expected]


def test_a_diverged_seed_leaves_a_claim_undecided():
    found = Measured(single({0: 4.0, 1: 4.1, 2: 3.9, 3: 4.0, 4: -60.0}), 4.0, is_at_papers_scale=True)
    assert verdicts(question(found)) == ["undecided"]


# -- power


@pytest.mark.parametrize(("size", "expected"), [(2.0, 5), (1.0, 10), (0.5, 34)])
def test_the_seeds_needed_equal_a_textbooks_table_of_paired_tests(size, expected):
    """Cohen (1988): two-sided 5 %, power .80: 34 for .5, 10 for 1."""
    assert effect(size, sd=1.0).seeds_needed == expected


def test_no_number_of_seeds_finds_an_effect_that_points_the_other_way():
    assert effect(-1.0).seeds_needed is None
    assert effect(2.0, relation="equal").seeds_needed is None
    assert effect(0.0).seeds_needed is None


@pytest.mark.parametrize("relation", ["equal", "no worse"])
def test_the_seeds_for_a_margin_have_the_power_that_they_are_said_to_have(relation):
    needed = effect(0.0, sd=0.9, relation=relation, margin=1.0).seeds_needed
    d = numpy.random.default_rng(0).normal(0, 0.9, (20_000, needed))
    reach = stats.t.isf(0.025, needed - 1) * stats.sem(d, axis=1)
    low, high = d.mean(axis=1) - reach, d.mean(axis=1) + reach
    assert 0.79 < numpy.mean((low > -1) & ((high < 1) | (relation == "no worse"))) < 0.87


# -- seeds until a headline is known


def test_a_headline_is_decided_by_its_width_and_never_by_zero():
    wide, narrow = model(50.0, sd=3.0), model(0.0, sd=0.2)
    assert not is_decided(wide, 0.5)
    assert is_decided(narrow, 0.5)
    assert widened(narrow).half_width == pytest.approx(1.15 * narrow.interval.half_width)


def test_fewer_than_five_seeds_decide_nothing():
    assert not is_decided(single(dict(enumerate([0.0, 0.01, -0.01, 0.0]))), 0.5)
    assert not is_decided(single({}), 0.5)
