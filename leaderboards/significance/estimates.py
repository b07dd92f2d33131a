"""Numbers over training seeds -> a mean and how far the seeds determine it, by the rules in ``rules``.

A number that is derived from several (a difference, a relative gain) is of the seeds that all of them have; it is the
formula of their means, and each seed's part in it is the formula's linear approximation. Intervals are over training
seeds, conditional on the test set and, where all seeds see the same ones, on the training images.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leaderboards.significance import rules

Formula = Callable[[Sequence[float]], float | None]


@dataclass(frozen=True)
class Estimate:
    """A number and how far its seeds determine it.

    Args:
        values: the number by seed; of a derived one what each seed contributes to it.
        mean: None without seeds, and where the formula has no value.
        least_sd: the smallest standard deviation that is believed.
        num_unmatched: runs that were left out, as another number that this one is derived from lacks their seed.
    """

    values: Mapping[int, float]
    mean: float | None
    least_sd: float = 0.0
    num_unmatched: int = 0

    @property
    def vector(self) -> list[float]:
        """One number a seed."""
        return list(self.values.values())

    @property
    def sd(self) -> float | None:
        """The standard deviation over seeds (n - 1); None below two seeds."""
        return self.standard_error * math.sqrt(len(self.values)) if len(self.values) > 1 else None

    @property
    def standard_error(self) -> float:
        """The standard error; 0.0 if it is not known, or if nothing scatters."""
        return rules.standard_error(self.vector, self.least_sd)

    @property
    def interval(self) -> rules.Interval | None:
        """The 95 % interval; None below three seeds, and if no seed changes the number."""
        return rules.interval(self.vector, self.least_sd)

    def t_test(self, limit: float = 0.0) -> rules.Sides:
        """Test whether the number is above a limit, and whether it is below."""
        return rules.t_test(self.vector, limit, self.least_sd)


def single(values: Mapping[int, float], least_sd: float = 0.0) -> Estimate:
    """Estimate the mean of one number by seed."""
    return Estimate(values, statistics.fmean(values.values()) if values else None, least_sd)


def derive(sources: Sequence[Estimate], formula: Formula) -> Estimate:
    """Derive a number from others by a formula of their means."""
    common = sorted(set.intersection(*(set(source.values) for source in sources)))
    num_unmatched = sum(source.num_unmatched + len(source.values) - len(common) for source in sources)
    if not common:  # configurations without a common seed: each one's own mean, and no interval
        means = [source.mean for source in sources if source.mean is not None]
        return Estimate({}, formula(means) if len(means) == len(sources) else None, num_unmatched=num_unmatched)
    means = [statistics.fmean(source.values[seed] for seed in common) for source in sources]
    mean, slopes = formula(means), [_slope(formula, means, i) for i in range(len(means))]
    known = [slope for slope in slopes if slope is not None]
    if mean is None or len(known) < len(slopes):
        return Estimate({}, mean, num_unmatched=num_unmatched)
    parts = list(zip(known, sources, means, strict=True))  # each seed's is linear in its distance from the means
    values = {seed: mean + sum(slope * (of.values[seed] - m) for slope, of, m in parts) for seed in common}
    return Estimate(values, mean, math.hypot(*(slope * of.least_sd for slope, of, _ in parts)), num_unmatched)


def _slope(formula: Formula, means: Sequence[float], i: int) -> float | None:
    """The slope of a formula by one of its means; None where it has no value beside them."""
    step = 1e-5 * max(1e-3, abs(means[i]))
    high, low = (formula([*means[:i], means[i] + side, *means[i + 1 :]]) for side in (step, -step))
    return None if high is None or low is None else (high - low) / (2 * step)


def rank_intervals(estimates: Sequence[Estimate]) -> list[tuple[int, int]]:
    """The best and the worst rank that each estimate may have, 1 being the highest: from 1 + the number that are
    significantly better to k - the number that are significantly worse, by seed with Holm over all pairs."""
    pairs = [(i, j) for i in range(len(estimates)) for j in range(i)]
    gaps = [derive([estimates[i], estimates[j]], lambda pair: pair[0] - pair[1]) for i, j in pairs]
    sides = [gap.t_test() for gap in gaps]
    adjusted = rules.holm(
        [of.p if len(gap.values) >= rules.FEWEST_SHOWN else 1.0 for gap, of in zip(gaps, sides, strict=True)]
    )
    num_better, num_worse = [0] * len(estimates), [0] * len(estimates)
    for (i, j), of, p in zip(pairs, sides, adjusted, strict=True):
        if p < rules.SIGNIFICANCE:
            better, worse = (i, j) if of.holds < of.fails else (j, i)
            num_better[worse] += 1
            num_worse[better] += 1
    return [(1 + b, len(estimates) - w) for b, w in zip(num_better, num_worse, strict=True)]
