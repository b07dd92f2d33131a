"""Coverage, size and power of the rules of judgment, over thousands of simulated grids.

    python benchmarks/seed_statistics.py --grids 20000 > benchmarks/seed_statistics.md

Seeds are drawn from known distributions, judged by the very functions that make the leaderboards, and counted. Unless a
line says otherwise deviations are .8 points and runs of one seed correlate by .15, as published runs do.
``tests/benchmarks/test_seed_statistics.py`` runs a short form of it and fails where a rule is broken.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from leaderboards.significance import rules
from leaderboards.significance.estimates import rank_intervals, single
from leaderboards.significance.power import is_decided, widened
from leaderboards.significance.verdicts import Measured, Printed, Question, judge_claims, judge_table
from suite.spec.claims import slope_weights

Array = npt.NDArray[np.float64]
SHARES = (0.05, 0.1, 0.3, 0.5, 1.0)
LOGS = -np.log(SHARES)
SLOPE = np.array(slope_weights(SHARES))
ACCURACIES = np.array([34.0, 40.0, 49.0, 52.0, 55.0])  # of the baseline, by share
SIGNS = {"same direction": 1, "opposite direction": -1, "unresolved": 0}


Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 4 degrees)": lambda rng, shape: rng.standard_t(4, shape) / math.sqrt(2),
    "skewed (gamma, shape 4)": lambda rng, shape: (4 - rng.gamma(4, size=shape)) / 2,
}


def effects(
    grids: int, n: int, effect: float = 0.0, sd: tuple[float, float] = (0.8, 0.8), shape: str = "normal"
) -> Array:
    """Draw vectors (grids, n) of one number a seed, the difference of two configurations.

    Args:
        grids, n: number of vectors, and of seeds in each.
        effect: the true mean.
        sd: deviation of each configuration.
        shape: one of ``SHAPES``.
    """
    rng, draw = np.random.default_rng(n), SHAPES[shape]
    common = math.sqrt(0.15) * draw(rng, (grids, n))
    better, baseline = (s * (common + math.sqrt(0.85) * draw(rng, (grids, n))) for s in sd)
    return better - baseline + effect


def percent(found: Sequence[bool] | Iterator[bool]) -> float:
    return 100 * float(np.mean(list(found)))


def coverage(d: Array, truth: float = 0.0) -> float:
    """How often the interval covers the truth."""
    return percent((reach := rules.interval(v)) is not None and reach.low <= truth <= reach.high for v in d.tolist())


def found(d: Array, level: float = rules.SIGNIFICANCE) -> float:
    """How often the two-sided test finds something: its size, or its power."""
    return percent(rules.t_test(v).p < level for v in d.tolist())


def gains(grids: int, n: int, gain: Array, of_seed: float = 0.45, of_run: float = 0.65) -> Array:
    """(grids, shares, n) gains in points. A seed's runs on all shares have a common part, as the records show.

    Args:
        gain: (shares,) true gains.
        of_seed, of_run: variances of a seed's part and of a run's own.
    """
    rng = np.random.default_rng(n)
    common = math.sqrt(of_seed) * rng.normal(size=(grids, 1, n))
    return gain[:, None] + common + math.sqrt(of_run) * rng.normal(size=(grids, len(SHARES), n))


def trend(y: Array) -> tuple[float, float, float]:
    """How often the gain is found to fall with the share: in points, in log odds, and in both."""
    better = ACCURACIES[:, None] + y
    odds = np.log(better / (100 - better)) - np.log(ACCURACIES / (100 - ACCURACIES))[:, None]
    slopes = [np.einsum("j,bjn->bn", SLOPE, gain).tolist() for gain in (y, odds)]
    in_points, in_odds = ([2 * rules.t_test(v).holds < 0.05 for v in slope] for slope in slopes)
    return percent(in_points), percent(in_odds), percent(a and b for a, b in zip(in_points, in_odds, strict=True))


def falling(first: float, last: float) -> Array:
    """Gains that fall from the first share to the last, by equal steps an e-fold."""
    return np.asarray(last + (first - last) * LOGS / LOGS[0])


def constant_in_log_odds(gain: float) -> Array:
    """Gains that are this many points on all images, and the same in log odds on every share."""
    odds = np.log(ACCURACIES / (100 - ACCURACIES))
    last = ACCURACIES[-1] + gain
    shifted = odds + math.log(last / (100 - last)) - odds[-1]
    found: Array = 100 / (1 + np.exp(-shifted)) - ACCURACIES
    return found


def papers(grids: int, n: int, null: float, num_claims: int = 28) -> tuple[float, float, float]:
    """Papers of claims of one, one, two and four effects: false verdicts among all, papers with one, and power.

    Args:
        null: the share of claims of which a part is no effect; of the rest three in ten have a part that is opposite.
    """
    rng = np.random.default_rng(n)
    false, with_one, power = [], [], []
    for _ in range(grids):
        questions, truth = [], []
        for size in (1, 1, 2, 4) * (num_claims // 4):
            means = rng.uniform(0.5, 4.0, size)
            kind = 0 if rng.random() < null else -1 if rng.random() < 0.3 else 1
            means[0] *= kind
            means[1:] *= null < 1  # where nothing is true, all parts are no effects
            vectors = means[:, None] + 0.8 * math.sqrt(1.7) * rng.normal(size=(size, n))
            questions.append(Question("", [Measured(single(dict(enumerate(v)))) for v in vectors.tolist()]))
            truth.append(kind)
        signs = [SIGNS[judged.verdict] for judged in judge_claims(questions)]
        wrong = sum(sign not in (0, kind) for sign, kind in zip(signs, truth, strict=True))
        false.append(wrong / max(1, sum(map(abs, signs))))
        with_one.append(wrong > 0)
        power += [sign == kind for sign, kind in zip(signs, truth, strict=True) if kind]
    return 100 * float(np.mean(false)), percent(with_one), percent(power) if power else math.nan


def until(grids: int, sd: float, target: float, most: int = 30) -> tuple[float, float, float]:
    """Play ``--seeds until``: coverage of the interval that it prints, size of its test, and the mean number of seeds.

    Args:
        grids: number of grids.
        sd: deviation of one seed's difference.
        target: half-width that is asked for.
        most: the most seeds.
    """
    covered, rejected, spent = [], [], []
    for v in effects(grids, most, sd=(sd, sd)).tolist():
        n = next((n for n in range(5, most) if is_decided(single(dict(enumerate(v[:n]))), target)), most)
        reach = widened(single(dict(enumerate(v[:n]))))
        covered.append(reach is not None and reach.low <= 0 <= reach.high)
        rejected.append(rules.t_test(v[:n], widening=rules.WIDENING).p < rules.SIGNIFICANCE)
        spent.append(n)
    return percent(covered), percent(rejected), float(np.mean(spent))


def after_a_look(grids: int, looks: tuple[int, int], effect: float, levels: tuple[float, ...]) -> float:
    """Count how often one of two looks finds something.

    Args:
        grids: number of grids.
        looks: seeds at each look.
        effect: the true mean.
        levels: level of each look.
    """
    d = effects(grids, looks[1], effect).tolist()
    return percent(any(rules.t_test(v[:n]).p < p for n, p in zip(looks, levels, strict=True)) for v in d)


def controlled(grids: int, rise: float, on_baseline: bool) -> tuple[float, float]:
    """The bias of a fall of the gain that is not there, given that the control passes; and how often it passes.

    Args:
        rise: how far accuracy truly rises from the first share to the last.
        on_baseline: whether the control looks at the baseline alone, not at the mean of both models.
    """
    rng = np.random.default_rng(8)
    low, high = 0.9 * rng.normal(size=(2, grids, 8)), 0.9 * rng.normal(size=(2, grids, 8)) + rise
    rises, fall = high - low, (low[1] - low[0]) - (high[1] - high[0])
    control = rises[0] if on_baseline else rises.mean(axis=0)
    passes = np.array([rules.passes_control(v) for v in control.tolist()])
    return float(fall.mean(axis=1)[passes].mean()) if passes.any() else math.nan, percent(passes.tolist())


def over_images(grids: int, num_images: int = 1000) -> tuple[float, float]:
    """The size of the test over seeds and images, and of the one by seed, where other images are meant as well."""
    rng, ours, by_seed = np.random.default_rng(9), [], []
    for _ in range(grids):
        image, own = 1.2 * rng.normal(size=num_images), 0.6 * rng.normal(size=(2, 1, num_images))
        shown = image + own + 0.035 * rng.normal(size=(2, 5, 1)) + rng.normal(size=(2, 5, num_images)) > 0
        difference = shown[1].astype(float) - shown[0]
        ours.append(rules.over_images(difference).p < rules.SIGNIFICANCE)
        by_seed.append(rules.t_test(difference.mean(axis=1).tolist()).p < rules.SIGNIFICANCE)
    return percent(ours), percent(by_seed)


def ranks(grids: int, gap: float, n: int, num_models: int = 7) -> tuple[float, float]:
    """Rank models in a row: the share of pairs that are told apart, and of grids with a wrong rank.

    Args:
        grids: number of grids.
        gap: deviations from one model to the next.
        n: number of seeds.
        num_models: number of models.
    """
    rng, told, wrong = np.random.default_rng(2), [], []
    pairs = [(i, j) for i in range(num_models) for j in range(i)]
    for _ in range(grids):
        values = gap * np.arange(num_models)[:, None] + rng.normal(size=(num_models, n))
        of = rank_intervals([single(dict(enumerate(v))) for v in values.tolist()])
        signs = [int(of[i][1] < of[j][0]) - int(of[j][1] < of[i][0]) for i, j in pairs]
        told += [sign == 1 for sign in signs]
        wrong.append(any(sign < 0 or (sign and not gap) for sign in signs))
    return percent(told), percent(wrong)


def cells(grids: int, shortfall: float, n: int) -> dict[str, float]:
    """The verdicts on ten cells a table whose means are so far below that of which the paper prints one seed."""
    rng, verdicts = np.random.default_rng(3), []
    for _ in range(grids // 10):
        seeds = 70 - shortfall + 0.3 * rng.normal(size=(10, n))
        printed = [Printed(round(70 + 0.3 * rng.normal(), 1), 0.05) for _ in seeds]
        of = [single(dict(enumerate(v))) for v in seeds.tolist()]
        verdicts += [verdict for verdict, _ in judge_table(list(zip(of, printed, strict=True)))]
    return {name: percent(v == name for v in verdicts) for name in ("reproduced", "contradicted", "undecided")}


def selection_bias(grids: int, num_candidates: int, n: int) -> tuple[float, float]:
    """By how many deviations a search among equals flatters its winner: shown by all seeds, and by the others."""
    scores = np.random.default_rng(6).normal(size=(grids, num_candidates, n))
    others = ((scores.sum(axis=2, keepdims=True) - scores) / (n - 1)).argmax(axis=1)
    ours = np.take_along_axis(scores, others[:, None], axis=1)
    return float(scores.mean(axis=2).max(axis=1).mean()), float(ours.mean())


# -- the table

Line = tuple[str, str, str]  # the rule, the case, and what was counted


def lines(grids: int) -> Iterator[Line]:
    """All lines of the table."""
    for of in (_of_effects, _of_trends, _of_claims, _of_margins, _of_looks, _of_images, _of_tables):
        yield from of(grids)


def _by_n(rates: dict[int, float]) -> str:
    return ", ".join(f"n {n}: {rate:.1f}" for n, rate in rates.items())


def _of_effects(grids: int) -> Iterator[Line]:
    for shape, sd in (*((shape, (0.8, 1.2)) for shape in SHAPES), ("normal", (0.5, 1.5))):
        of = _by_n({n: coverage(effects(grids, n, sd=sd, shape=shape)) for n in (3, 5, 8, 12)})
        yield "interval by seed", f"{shape}, deviations {sd[0]:g} and {sd[1]:g}", f"covers {of}"
    for effect in (0.0, 1.0, 2.0):
        of = _by_n({n: found(effects(grids, n, effect)) for n in (5, 6, 8, 12)})
        yield "two-sided test", f"true effect {effect:g} points", f"finds {of}"


def _of_trends(grids: int) -> Iterator[Line]:
    for name, gain in {"3.5 to 1.7": falling(3.5, 1.7), "2.24 to 1.3": falling(2.24, 1.3)}.items():
        for n in (5, 8, 12):
            y = gains(grids, n, gain)
            fall = trend(y)
            of = f"a mean gain {found(y.mean(axis=1)):.0f}; a fall in points {fall[0]:.0f}, in both {fall[2]:.0f}"
            yield "five shares, one number a seed", f"gain from {name}, n {n}", f"finds {of}"
    for name, gain in {"points": np.full(5, 3.0), "log odds": constant_in_log_odds(3.0)}.items():
        of = ", ".join(f"{share:.1f}" for share in trend(gains(grids, 12, gain)))
        yield "five shares, one number a seed", f"gain constant in {name}, n 12", f"a fall in points, odds, both: {of}"


def _of_claims(grids: int) -> Iterator[Line]:
    for null in (0.2, 0.5, 1.0):
        false, with_one, power = papers(max(200, grids // 10), 8, null)
        of = f"false among verdicts {false:.1f}; papers with a false one {with_one:.0f}"
        of += "" if math.isnan(power) else f"; power {power:.0f}"
        yield "28 claims, Benjamini-Hochberg, n 8", f"{100 * null:.0f} of 100 claims are null", of


def _of_margins(grids: int) -> Iterator[Line]:
    for margin, n in ((1.0, 8), (1.0, 12), (1.5, 5), (1.5, 8)):
        apart, alike = effects(grids, n, -margin).tolist(), effects(grids, n).tolist()
        rates = [percent(2 * rules.within(v, (-margin, margin)).holds < 0.05 for v in of) for of in (apart, alike)]
        rates += [percent(2 * rules.t_test(v, -margin).holds < 0.05 for v in of) for of in (apart, alike)]
        of = "equal {:.1f} at the margin, {:.0f} at 0; no worse {:.1f}, {:.0f}".format(*rates)
        yield "equal, no worse", f"margin {margin:g}, n {n}", of
    of = _by_n({n: 100 - found(effects(grids, n, -1.0)) for n in (5, 8)})
    yield "'not significant, so no worse'", "a true loss of a point", f"says so {of}"


def _of_looks(grids: int) -> Iterator[Line]:
    for sd, target in ((0.5, 0.5), (0.8, 0.5), (0.8, 1.0), (1.2, 1.0)):
        of = "covers {:.1f}, size {:.1f}, {:.0f} seeds".format(*until(max(200, grids // 10), sd, target))
        yield "--seeds until", f"H {target:g}, deviation {sd:g}", of
    for looks in ((5, 8), (6, 9)):
        at, plain = rules.levels(looks), (0.05, 0.05)
        rates = [after_a_look(grids, looks, *of) for of in ((0.0, at), (1.0, at), (0.0, plain))]
        of = "size {:.1f}, power at a point {:.0f}; size with .05 each {:.1f}".format(*rates)
        yield "seeds added after a look", f"{looks[0]}, then {looks[1]} seeds: {at[0]:g}, {at[1]:g}", of
    for rise in (0.6, 1.0, 3.0):
        (both, passes), (alone, _) = controlled(grids, rise, False), controlled(grids, rise, True)
        of = f"biases a fall of the gain by {both:+.2f} (passes {passes:.0f}); on the baseline alone by {alone:+.2f}"
        yield "positive control, n 8", f"accuracy rises by {rise:g}", of


def _of_images(grids: int) -> Iterator[Line]:
    for draw in (0.5, 0.8, 1.2):
        rng = np.random.default_rng(7)
        one, anew = (coverage(effects(grids, 8) + draw * rng.normal(size=(grids, k))) for k in (1, 8))
        yield "images of a share, n 8", f"a draw's deviation {draw:g}", f"one draw covers {one:.0f}, anew {anew:.1f}"
    of = "size {:.1f}; by seed alone {:.1f}".format(*over_images(max(200, grids // 10)))
    yield "by image, n 5", "other images are meant too", of


def _of_tables(grids: int) -> Iterator[Line]:
    for gap, n in ((0.0, 5), (2.0, 5), (2.0, 8)):
        of = "pairs told apart {:.0f}; tables with a wrong one {:.1f}".format(*ranks(max(100, grids // 20), gap, n))
        yield "ranks of seven, Holm", f"{gap:g} deviations from one to the next, n {n}", of
    for shortfall in (0.0, 2.0):
        of = ", ".join(f"{name} {share:.1f}" for name, share in cells(grids, shortfall, 5).items())
        yield "a printed number, n 5", f"truly {shortfall:g} points short, deviation .3", of
    naive, ours = selection_bias(grids, 12, 5)
    yield (
        "a search, n 5",
        "12 equal candidates",
        f"deviations: shown by all seeds {naive:+.2f}, by the others {ours:+.3f}",
    )


def main() -> None:
    """Print every rule's figures as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=2000, help="simulated grids of each line (default 2000)")
    grids = parser.parse_args().grids
    print(f"# Coverage, size and power of the rules, in percent of {grids:,} simulated grids a line\n")
    print("| rule | case | counted |\n| --- | --- | --- |")
    for line in lines(grids):
        print("| {} | {} | {} |".format(*line), flush=True)


if __name__ == "__main__":
    main()
