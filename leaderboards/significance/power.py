"""How many seeds an effect takes, so that a test at 5 % finds it four times of five."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaderboards.significance.estimates import SIGNIFICANCE

POWER = 0.80
MOST_SEEDS = 1000


def seeds_needed(mean: float, variances: Sequence[float], margin: float | None = None) -> int | None:
    """The seeds of each group at which a test at 5 % finds an effect with 80 % power, if what was seen is true.

    Args:
        mean: The effect that was seen.
        variances: The variance of one seed's contribution for each independent group, as an ``Estimate`` has them.
        margin: The margin of a claim of equality, shown by two one-sided tests; None: Welch's two-sided t against zero.

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
