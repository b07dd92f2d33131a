"""The seeds that an effect takes, so that its test finds it four times of five; and when a headline has enough.

``--seeds until=H``: seeds until a headline is known to H points, whatever it says.

Look first at five seeds, then after every further one, all configurations together; stop when 1.15 times the half-width
of the 95 % interval is at most H, and print the interval 1.15 times as wide. To look again and again and stop at a
lucky narrow interval costs coverage, which the factor gives back (``benchmarks/seed_statistics.py``). Whether zero is
inside is never looked at: stopping for that would find effects that are not there.
"""

import math
from bisect import bisect_left

from leaderboards.significance.estimates import Estimate
from leaderboards.significance.rules import FIRST_LOOK, SIGNIFICANCE, WIDENING, Interval, interval

POWER = 0.80
MOST_SEEDS = 1000


def seeds_needed(mean: float, sd: float, margin: float | None = None) -> int | None:
    """The seeds at which a paired test at 5 % finds an effect with 80 % power, if what was seen is true.

    Args:
        mean: the effect that was seen.
        sd: the deviation of one seed's effect.
        margin: the margin of a claim of equality; None: the test is whether the effect differs from zero.

    Returns:
        None if a thousand are too few, nothing is known to scatter, or the effect is outside its margin.
    """
    if (not mean and margin is None) or not sd or (margin is not None and abs(mean) >= margin):
        return None
    seeds = range(2, MOST_SEEDS + 1)
    found = bisect_left(seeds, POWER, key=lambda num_seeds: _power(mean, sd, margin, num_seeds))
    return seeds[found] if found < len(seeds) else None


def _power(mean: float, sd: float, margin: float | None, num_seeds: int) -> float:
    """The power of this many seeds, by the noncentral t; for equality by the central one."""
    from scipy.stats import nct, t

    df, error = num_seeds - 1, sd / math.sqrt(num_seeds)
    reach = t.isf(SIGNIFICANCE / 2, df)
    if margin is None:
        return float(nct.sf(reach, df, abs(mean) / error))
    sides = (t.cdf((margin + side * mean) / error - reach, df) for side in (1, -1))
    return max(0.0, float(sum(sides)) - 1)


def widened(estimate: Estimate) -> Interval | None:
    """The interval that may be shown after a stop."""
    return interval(estimate.vector, estimate.least_sd, WIDENING)


def is_decided(estimate: Estimate, target: float) -> bool:
    """Whether the widened interval's half-width is at most ``target``, with at least five seeds."""
    reach = widened(estimate)
    return reach is not None and len(estimate.values) >= FIRST_LOOK and reach.half_width <= target
