"""The seeds that an effect takes, so that a test at 5 % finds it four times of five; and when a headline has enough.

``--seeds until=H``: seeds until a headline is known to H points, whatever it says.

Look first at five seeds a group, then after every further one, all groups together; stop when 1.15 times the half-
width of the 95 % interval is at most H, and print the interval 1.15 times as wide. To look again and again and stop
at a lucky narrow interval costs coverage, which the factor gives back: simulated, at least 95 % for deviations of .3
to 1.5 at H = .5 (``benchmarks/seed_statistics.py``); the plain interval from three seeds on has 90 %. Whether zero is
inside is never looked at: stopping for that would find effects that are not there.
"""

import math
from collections.abc import Sequence

from leaderboards.significance.estimates import SIGNIFICANCE, Estimate, Interval

POWER = 0.80
MOST_SEEDS = 1000
FIRST_LOOK = 5
WIDENING = 1.15


def seeds_needed(mean: float, variances: Sequence[float], margin: float | None = None) -> int | None:
    """The seeds of each group at which a test at 5 % finds an effect with 80 % power, if what was seen is true.

    Args:
        mean: the effect that was seen.
        variances: the variance of one seed's contribution for each independent group, as an ``Estimate`` has them.
        margin: the margin of a claim of equality, shown by two one-sided tests; None: Welch's two-sided t against zero.

    Returns:
        None if a thousand are too few, nothing is known to scatter, or the effect is outside its margin.
    """
    if (not mean and margin is None) or not sum(variances) or (margin is not None and abs(mean) >= margin):
        return None
    low, high = 1, 2
    while _power(mean, variances, margin, high) < POWER:
        low, high = high, 2 * high
        if low > MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(mean, variances, margin, middle) >= POWER else (middle, high)
    return high


def _power(mean: float, variances: Sequence[float], margin: float | None, num_seeds: int) -> float:
    """The power of this many seeds in each group, by the noncentral t; for equality by the central one."""
    from scipy.stats import nct, t

    df = (num_seeds - 1) * sum(variances) ** 2 / sum(v**2 for v in variances)
    error = math.sqrt(sum(variances) / num_seeds)
    if margin is None:
        return float(nct.sf(t.isf(SIGNIFICANCE / 2, df), df, abs(mean) / error))
    reach = t.isf(SIGNIFICANCE, df)
    sides = (t.cdf((margin + side * mean) / error - reach, df) for side in (1, -1))
    return max(0.0, float(sum(sides)) - 1)


def widened(estimate: Estimate) -> Interval | None:
    """The interval that may be shown after a stop."""
    reach = estimate.interval
    if reach is None or estimate.mean is None:
        return None
    return Interval(estimate.mean - WIDENING * reach.half_width, estimate.mean + WIDENING * reach.half_width)


def is_decided(estimate: Estimate, target: float) -> bool:
    """Whether the widened interval's half-width is at most ``target``, with at least five seeds a group."""
    reach = widened(estimate)
    return reach is not None and min(estimate.sizes) >= FIRST_LOOK and reach.half_width <= target
