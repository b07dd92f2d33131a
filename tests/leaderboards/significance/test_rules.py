import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leaderboards.significance import rules
from leaderboards.significance.estimates import derive, single
from leaderboards.significance.rules import Sides
from suite.spec.claims import number, slope_weights, trend

D = [1.3, 0.2, 2.1, 0.9, -0.4, 1.7]
SHARES = (0.05, 0.1, 0.3, 0.5, 1.0)


@pytest.fixture
def frame():
    """Two models on five shares by eight seeds, of which one model lacks the last seed on all images."""
    rng = np.random.default_rng(3)
    runs = [
        {"configuration": f"{model} {share}", "seed": seed, "value": center + 8 * share + rng.normal()}
        for model, center in (("convit", 42.0), ("deit", 40.0))
        for share in SHARES
        for seed in range(8)
    ]
    return pd.DataFrame([run for run in runs if (run["configuration"], run["seed"]) != ("deit 1.0", 7)])


def gains(weights):
    """ConViT less DeiT, share by share."""
    return {f"{model} {s}": sign * w for s, w in zip(SHARES, weights, strict=True) for model, sign in MODELS}


MODELS = (("convit", 1.0), ("deit", -1.0))


def by_seed(frame, weights, convert=float):
    """Each seed's sum of the configurations' values by weights, and the number of runs that are left out."""
    runs = [frame[frame.configuration == name] for name in weights]
    sources = [single(dict(zip(of.seed, map(convert, of.value), strict=True))) for of in runs]
    found = derive(sources, lambda means: sum(w * m for w, m in zip(weights.values(), means, strict=True)))
    return found.values, found.num_unmatched


# -- several runs a seed


def test_an_effect_is_one_number_a_seed_and_runs_without_a_partner_are_counted(frame):
    found, num_unmatched = by_seed(frame, {"convit 1.0": 1.0, "deit 1.0": -1.0})
    wide = frame.set_index(["configuration", "seed"]).value
    assert found == pytest.approx({s: wide["convit 1.0", s] - wide["deit 1.0", s] for s in range(7)})
    assert num_unmatched == 1


def test_a_mean_over_shares_and_a_slope_are_one_number_a_seed_too(frame):
    wide = frame.pivot(index="seed", columns="configuration", values="value").dropna()
    gain = np.stack([wide[f"convit {s}"] - wide[f"deit {s}"] for s in SHARES])
    mean, num_unmatched = by_seed(frame, gains([0.2] * 5))
    slope, _ = by_seed(frame, gains(slope_weights(SHARES)))
    assert list(mean.values()) == pytest.approx(gain.mean(axis=0))
    assert list(slope.values()) == pytest.approx(np.polyfit(-np.log(SHARES), gain, 1)[0])
    assert num_unmatched == 9


def test_a_slope_in_log_odds_is_that_of_each_accuracys_log_odds(frame):
    wide = (
        frame.pivot(index="seed", columns="configuration", values="value")
        .dropna()
        .map(lambda p: math.log(p / (100 - p)))
    )
    gain = np.stack([wide[f"convit {s}"] - wide[f"deit {s}"] for s in SHARES])
    found, _ = by_seed(frame, gains(slope_weights(SHARES)), rules.to_log_odds)
    assert list(found.values()) == pytest.approx(np.polyfit(-np.log(SHARES), gain, 1)[0])


def test_a_claims_trend_has_the_same_weights():
    points, log_odds = trend({share: number("any", str(share), "top1") for share in SHARES})
    assert [term.weight for term in points.terms] == pytest.approx(slope_weights(SHARES))
    assert (points.log_odds, log_odds.log_odds, log_odds.terms) == (False, True, points.terms)


# -- a vector


def test_the_interval_and_the_test_of_an_effect_are_students_by_seed():
    found, expected = rules.interval(D), stats.ttest_1samp(D, 0)
    reach = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((reach.low, reach.high))
    assert rules.t_test(D).p == pytest.approx(expected.pvalue)
    assert rules.t_test(D, 0.5).holds == pytest.approx(stats.ttest_1samp(D, 0.5, alternative="greater").pvalue)
    assert rules.t_test(D, 0.5).fails == pytest.approx(stats.ttest_1samp(D, 0.5, alternative="less").pvalue)


def test_three_seeds_show_an_interval_and_two_none():
    assert rules.interval(D[:2]) is None
    assert rules.interval(D[:3]) is not None


def test_what_nothing_scatters_has_no_test_but_to_the_step_that_is_believed():
    assert (rules.interval([1.0] * 5), rules.t_test([1.0] * 5)) == (None, (1.0, 1.0))
    assert rules.interval([1.0] * 4, least_sd=0.1).half_width == pytest.approx(stats.t.isf(0.025, 3) * 0.05)


def test_a_widened_interval_and_its_test_say_the_same():
    limit = rules.interval(D, widening=rules.WIDENING).low
    assert rules.t_test(D, limit, widening=rules.WIDENING).p == pytest.approx(0.05)


@pytest.mark.parametrize("shift", [-2.0, -0.5, 0.0, 0.6, 3.0])
def test_equal_is_that_the_interval_lies_within_the_margin_and_no_worse_that_it_lies_above(shift):
    values = [value + shift for value in D]
    reach = rules.interval(values)
    sides = rules.within(values, (-1.5, 1.5))
    assert (2 * sides.holds < 0.05) == (reach.low > -1.5 and reach.high < 1.5)
    assert (2 * sides.fails < 0.05) == (reach.low > 1.5 or reach.high < -1.5)
    assert (2 * rules.t_test(values, -1.5).holds < 0.05) == (reach.low > -1.5)


def test_a_positive_control_needs_five_seeds_and_one_in_two_hundred():
    assert rules.passes_control([3.0, 3.1, 2.9, 3.0, 3.2])
    assert not rules.passes_control([3.0, 3.1, 2.9, 3.0])
    assert not rules.passes_control(D)  # p .012, one-sided


# -- several tests


def test_a_claim_of_several_effects_holds_by_its_weakest_and_fails_by_its_strongest_opposite():
    good, open_, bad = Sides(0.001, 0.999), Sides(0.2, 0.8), Sides(0.996, 0.004)
    assert rules.all_of([good, good, open_]) == (0.2, 1.0)
    assert rules.all_of([good, bad]) == (0.996, 0.008)
    assert rules.all_of([good, bad]).p == pytest.approx(0.016)


def test_a_part_that_cannot_be_tested_keeps_a_claim_from_holding_but_not_from_failing():
    assert rules.all_of([Sides(0.001, 0.999)], num_untestable=1) == (1.0, 0.999)
    assert rules.all_of([Sides(0.99, 0.01)], num_untestable=1) == (1.0, 0.01)
    assert rules.all_of([], num_untestable=2) == (1.0, 1.0)


def test_adjusting_is_benjaminis_and_hochbergs_and_holms_equal_hand_computations():
    assert rules.adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert rules.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert (rules.adjust([]), rules.holm([])) == ([], [])


def test_looks_have_levels_that_were_planned_or_pococks():
    assert rules.levels((8,)) == (0.05,)
    assert rules.levels((5, 8)) == (0.01, 0.045)
    assert rules.levels((6, 9)) == (0.0294, 0.0294)


def test_two_looks_at_nothing_find_something_in_five_of_a_hundred():
    rng = np.random.default_rng(0)
    d = rng.normal(size=(40_000, 8))
    p = {n: stats.ttest_1samp(d[:, :n], 0, axis=1).pvalue for n in (5, 8)}
    for first, second in (rules.levels((5, 8)), rules.levels((6, 9))):
        assert np.mean((p[5] < first) | (p[8] < second)) == pytest.approx(0.05, abs=0.005)


# -- predictions


def slow_two_way(d):
    """The variance components of a mean over two crossed random factors, sum by sum."""
    n, num = len(d), len(d[0])
    mean = sum(map(sum, d)) / n / num
    a, b = [sum(row) / num for row in d], [sum(row[j] for row in d) / n for j in range(num)]
    vs = sum((x - mean) ** 2 for x in a) / (n - 1) / n
    vi = sum((x - mean) ** 2 for x in b) / (num - 1) / num
    ve = sum((d[i][j] - a[i] - b[j] + mean) ** 2 for i in range(n) for j in range(num)) / (
        (n - 1) * (num - 1) * n * num
    )
    v = max(vs + vi - ve, vs, vi)
    return mean, math.sqrt(v), max(n - 1, v**2 / (vs**2 / (n - 1) + vi**2 / (num - 1)))


def test_over_images_equals_a_slow_transcription():
    rng = np.random.default_rng(1)
    d = rng.integers(-1, 2, size=(5, 40)).astype(float)
    found = rules.over_images(d)
    mean, error, df = slow_two_way(d.tolist())
    assert found[:3] == pytest.approx((mean, error, df))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(mean) / error, df))


def test_over_images_and_seeds_nothing_is_found_in_at_most_six_of_a_hundred():
    rng, found = np.random.default_rng(2), 0
    for _ in range(400):
        image, model = 1.2 * rng.normal(size=300), 0.6 * rng.normal(size=(2, 300))
        right = image + model[:, None] + 0.05 * rng.normal(size=(2, 6, 1)) + rng.normal(size=(2, 6, 300)) > 0
        found += rules.over_images(right[1].astype(float) - right[0]).p < 0.05
    assert found / 400 < 0.075


def test_classes_are_tested_each_by_its_images_and_adjusted_together():
    rng = np.random.default_rng(4)
    labels = np.repeat([3, 7], 50)
    d = rng.integers(-1, 2, size=(5, 100)) + np.where(labels == 7, 0.8, 0.0)
    found = rules.over_classes(d, labels)
    raw = {label: rules.over_images(d[:, labels == label]).p for label in (3, 7)}
    assert {label: p for label, (_, p) in found.items()} == pytest.approx({3: raw[3], 7: 2 * raw[7]})
