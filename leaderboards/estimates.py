"""Statistics of a handful of seeds, by scipy: the mean's interval, a test against the paper's number, shared ranks.

The 95 % interval depends on the number of seeds n:

- n = 1: none. One run says nothing of how far another would lie from it.
- 2 <= n < 10: Student's t. It assumes that seeds scatter normally, which so few cannot refute; a bootstrap of so few
  values resamples them alone and comes out too narrow.
- n >= 10: the bias-corrected and accelerated bootstrap (BCa), which assumes no shape: accuracies near 100 % scatter
  with a longer tail below. From about ten values on its skewness is estimated well enough to be better than t's. Its
  random state is fixed, so that the same values give the same bytes.

scipy.stats takes half a second to import: only what needs it imports it, when it is called.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from leaderboards.cells import Estimate, Interval

CONFIDENCE = 0.95
SMALLEST_BOOTSTRAP = 10
_RESAMPLES_AT_ONCE = 1000  # of all 9,999: bounds the memory that a thousand seeds take


def estimate(values: Mapping[int, float]) -> Estimate:
    """Estimate a number from its values by seed: their mean, and its interval where there are two or more."""
    found = list(values.values())
    return Estimate(values, statistics.fmean(found) if found else None, interval(found))


def interval(values: Sequence[float]) -> Interval | None:
    """The 95 % confidence interval of the values' mean; None below two values. Equal values give a width of 0."""
    if len(values) < 2:
        return None
    mean, sd = statistics.fmean(values), statistics.stdev(values)
    if sd > 0 and len(values) >= SMALLEST_BOOTSTRAP:
        low, high = _bootstrap(values)
        if math.isfinite(low) and math.isfinite(high):  # else all resamples lie on one side of the mean
            return Interval(sd, low, high, "bca")
    from scipy.special import stdtrit  # a third of the start-up of scipy.stats

    half_width = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * sd / len(values) ** 0.5
    return Interval(sd, mean - half_width, mean + half_width, "t")


def _bootstrap(values: Sequence[float]) -> tuple[float, float]:
    import numpy
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,),
        numpy.mean,
        confidence_level=CONFIDENCE,
        batch=_RESAMPLES_AT_ONCE,
        method="BCa",
        rng=numpy.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def p_value_below(values: Sequence[float], paper: float) -> float | None:
    """How probable values as low as these would be if their true mean were the paper's number: Student's one-sided test
    of one sample. None below two values.

    A small one says that ours is *significantly below* the paper's. A large one says only that ours is not
    significantly below it: few seeds that scatter widely are below nothing.
    """
    if len(values) < 2:
        return None
    if len(set(values)) == 1:  # no scatter: the test's limit, which scipy cannot divide out
        return 0.0 if values[0] < paper else 1.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, paper, alternative="less").pvalue)


def shared_ranks(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """The rank of each interval, the highest being 1. Those that overlap share a rank, also through a chain of others
    between them; after k that share rank r comes rank r + k."""
    order = sorted(range(len(intervals)), key=lambda i: intervals[i][1], reverse=True)
    ranks = [0] * len(intervals)
    rank, lowest = 1, math.inf
    for position, i in enumerate(order):
        low, high = intervals[i]
        if high < lowest:  # nothing above reaches down to this one
            rank = position + 1
        lowest = min(lowest, low)
        ranks[i] = rank
    return ranks
