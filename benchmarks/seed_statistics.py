"""Coverage, size and power of the leaderboards' statistical rules, over thousands of simulated grids.

    python benchmarks/seed_statistics.py --grids 20000

Seeds are drawn from known distributions, judged by the very functions that make the leaderboards, and counted: how
often an interval covers the truth, how often a test speaks though there is nothing, and how often it finds what is
there. ``tests/benchmarks/test_seed_statistics.py`` runs a short form of it and fails where a rule is broken.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from leaderboards.significance.estimates import (
    SIGNIFICANCE,
    Estimate,
    Sample,
    difference,
    p_value,
    rank_intervals,
    single,
)
from leaderboards.significance.power import FIRST_LOOK, is_decided, widened
from leaderboards.significance.verdicts import Measured, Printed, judge_claims, judge_table

Draw = Callable[[np.random.Generator, int], np.ndarray]
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails (t, 4 degrees)": lambda rng, n: rng.standard_t(4, n) / math.sqrt(2),
    "skewed (gamma, shape 4)": lambda rng, n: (4 - rng.gamma(4, size=n)) / 2,
}


def estimate(values: Sequence[float] | npt.NDArray[np.float64], name: str = "") -> Estimate:
    """A model's seeds, independent of every other model's."""
    return single(Sample(dict(enumerate(map(float, values))), frozenset({name}), least_sd=0.01 / math.sqrt(12)))


def coverage(shape: str, num_seeds: int, grids: int) -> float:
    """How often the 95 % interval of ``num_seeds`` seeds covers the true mean."""
    rng, draw, hits = np.random.default_rng(0), SHAPES[shape], 0
    for _ in range(grids):
        reach = estimate(70 + draw(rng, num_seeds)).interval
        hits += reach is not None and reach.low <= 70 <= reach.high
    return hits / grids


def rejections(num_seeds: tuple[int, int], deviations: tuple[float, float], effect: float, grids: int) -> float:
    """How often two models are told apart at 5 %.

    Args:
        num_seeds, deviations: Numbers of seeds and deviations of the two models.
        effect: Distance between their true means: at 0 the share is the test's size, else its power.
        grids: Number of simulated grids.
    """
    rng, hits = np.random.default_rng(1), 0
    for _ in range(grids):
        groups = [
            estimate(70 + shift + sd * rng.normal(size=n), name)
            for n, sd, shift, name in zip(num_seeds, deviations, (effect, 0.0), "ab", strict=True)
        ]
        hits += (p_value(difference(*groups)) or 0.0) < SIGNIFICANCE
    return hits / grids


def separations(gaps: Sequence[float], num_seeds: int, grids: int) -> tuple[float, float]:
    """Share of the pairs that the ranks put in order, and share of the grids in which they put one pair in the wrong
    order or tell equal ones apart; ``gaps`` are the models' true means, in deviations."""
    rng, told, wrong = np.random.default_rng(2), 0, 0
    pairs = [(i, j) for i in range(len(gaps)) for j in range(i)]
    for _ in range(grids):
        ranks = rank_intervals([estimate(70 + g + rng.normal(size=num_seeds), str(i)) for i, g in enumerate(gaps)])
        signs = [np.sign(gaps[i] - gaps[j]) for i, j in pairs]
        found = [int(ranks[i][1] < ranks[j][0]) - int(ranks[j][1] < ranks[i][0]) for i, j in pairs]
        told += sum(f != 0 and f == s for f, s in zip(found, signs, strict=True))
        wrong += any(f not in (0, s) for f, s in zip(found, signs, strict=True))
    return told / grids / len(pairs), wrong / grids


def cell_verdicts(shortfall: float, sd: float, num_seeds: int, grids: int, num_cells: int = 10) -> dict[str, float]:
    """Shares of the verdicts on cells.

    Args:
        shortfall: Points by which their true mean is below that of which the paper prints one seed.
        sd: The seeds' deviation, ours and the paper's.
        num_seeds: Number of our seeds.
        grids: Number of cells in all.
        num_cells: Number of cells in a table.
    """
    rng, counts = np.random.default_rng(3), {"reproduced": 0, "contradicted": 0, "undecided": 0}
    for _ in range(max(1, grids // num_cells)):
        cells = [
            (
                estimate(70 - shortfall + sd * rng.normal(size=num_seeds)),
                Printed(round(70 + sd * rng.normal(), 1), 0.05),
            )
            for _ in range(num_cells)
        ]
        for verdict, _ in judge_table(cells):
            counts[verdict] += 1
    return {verdict: count / sum(counts.values()) for verdict, count in counts.items()}


def claim_verdicts(
    effect: float, paper: float, sd: float, num_seeds: int, grids: int, margin: float | None = None
) -> dict[str, float]:
    """Shares of the verdicts on a claim that stands alone.

    Args:
        effect: Our true effect.
        paper: Effect that the paper finds.
        sd: The seeds' deviation.
        num_seeds: Number of seeds of each configuration.
        grids: Number of simulated grids.
        margin: Margin of a claim of equality.
    """
    rng = np.random.default_rng(4)
    counts: dict[str, int] = {}
    for _ in range(grids):
        groups = [
            estimate(70 + shift + sd * rng.normal(size=num_seeds), name) for shift, name in ((effect, "a"), (0, "b"))
        ]
        verdict = judge_claims([[Measured(difference(*groups), paper, margin)]])[0][0]
        counts[verdict] = counts.get(verdict, 0) + 1
    return {verdict: count / grids for verdict, count in counts.items()}


def sequential_coverage(sd: float, target: float, most_seeds: int, grids: int) -> tuple[float, float]:
    """How often the interval that ``--seeds until`` prints covers the truth, and the mean seeds of a configuration.

    Args:
        sd: The seeds' deviation.
        target: Half-width that is asked for.
        most_seeds: Value of ``--max-seeds``.
        grids: Number of simulated grids.
    """
    rng, hits, spent = np.random.default_rng(5), 0, []
    for _ in range(grids):
        seeds = sd * rng.normal(size=(2, most_seeds))
        n = FIRST_LOOK
        while n < most_seeds and not is_decided(
            difference(*(estimate(group[:n], str(i)) for i, group in enumerate(seeds))), target
        ):
            n += 1
        reach = widened(difference(*(estimate(group[:n], str(i)) for i, group in enumerate(seeds))))
        hits += reach is not None and reach.low <= 0 <= reach.high
        spent.append(n)
    return hits / grids, statistics.fmean(spent)


def selection_bias(num_candidates: int, num_seeds: int, grids: int) -> tuple[float, float]:
    """How far the shown mean exceeds the truth in a search among equal candidates, in deviations: if the winner of all
    seeds is shown with them, and if each seed shows the winner of the others."""
    rng, naive, ours = np.random.default_rng(6), [], []
    for _ in range(grids):
        found = rng.normal(size=(num_candidates, num_seeds))
        naive.append(found.mean(axis=1).max())
        others = (found.sum(axis=1, keepdims=True) - found) / (num_seeds - 1)
        ours.append(found[others.argmax(axis=0), np.arange(num_seeds)].mean())
    return statistics.fmean(naive), statistics.fmean(ours)


def main() -> None:
    """Print every rule's figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=2000, help="simulated grids of each line (default 2000)")
    grids = parser.parse_args().grids
    _print_tests(grids)
    _print_ranks(max(100, grids // 10))
    _print_verdicts(grids)
    for sd in (0.3, 0.5, 1.0, 1.5):
        covered, spent = sequential_coverage(sd, 0.5, 30, grids)
        print(f"--seeds until=0.5 at deviation {sd}: covers {covered:.1%}, {spent:.1f} seeds a configuration")
    for n in (3, 5, 10):
        naive, ours = selection_bias(12, n, grids)
        print(f"12 equal candidates, n={n}: naive +{naive:.2f} deviations, chosen on other seeds {ours:+.3f}")


def _print_tests(grids: int) -> None:
    for shape in SHAPES:
        found = ", ".join(f"n={n}: {coverage(shape, n, grids):.1%}" for n in (3, 5, 10, 30))
        print(f"coverage of the 95 % interval, {shape}: {found}")
    for sds in ((1.0, 1.0), (1.0, 3.0), (1.0, 10.0)):
        sizes = ((3, 3), (3, 5), (5, 3), (5, 5), (10, 10))
        found = ", ".join(f"n={a}, {b}: {rejections((a, b), sds, 0.0, grids):.1%}" for a, b in sizes)
        print(f"size of the test at deviations {sds[0]:g} and {sds[1]:g}: {found}")
    found = ", ".join(f"n={n}: {rejections((n, n), (1.0, 1.0), 2.0, grids):.1%}" for n in (3, 5, 8))
    print(f"power at an effect of two deviations: {found}")


def _print_ranks(grids: int) -> None:
    models = {
        "two models, 2 deviations apart": (0.0, 2.0),
        "seven models, 2 deviations from one to the next": tuple(2.0 * i for i in range(7)),
        "seven equal models": (0.0,) * 7,
    }
    for name, gaps in models.items():
        for n in (3, 5):
            told, wrong = separations(gaps, n, grids)
            print(f"ranks of {name}, n={n}: {told:.1%} of the pairs told apart, wrong in {wrong:.1%} of the grids")


def _print_verdicts(grids: int) -> None:
    for shortfall in (0.0, 2.0, 4.0):
        for n in (2, 5, 10):
            print(f"cells {shortfall:g} points short, deviation 0.3, n={n}: {cell_verdicts(shortfall, 0.3, n, grids)}")
    for effect, paper, margin in ((0, 4, None), (1, 4, None), (4, 4, None), (0, 0, 1.0), (1, 0, 1.0), (3, 0, 1.0)):
        what = "a claim of equality" if margin else f"a claim of {paper} points"
        print(f"{what}, true effect {effect}, deviation 0.5, n=5:", end=" ")
        print(claim_verdicts(effect, paper, 0.5, 5, grids, margin))


if __name__ == "__main__":
    main()
