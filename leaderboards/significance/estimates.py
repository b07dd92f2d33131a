"""Numbers over training seeds -> a mean, how far the seeds determine it, and what may be said of two of them.

**One method for all comparisons, chosen before the seeds were trained: Welch's t**, of one sample Student's, at every
number of seeds. A number that is derived from several samples (a difference, a relative gain) has the variance that
its linear approximation gives, sample by sample, and the Welch-Satterthwaite degrees of freedom. Samples of different
networks are taken as independent: seeds of two models share the order of the images but hardly correlate (between -.4
and 0 where it was measured), and pairing three of them would throw away half of the degrees of freedom. Samples that
are measured on the same networks, or on networks with a common parent, are paired by seed; then mean, n and interval
are all of the seeds that both have.

Simulated size of the two-sided test at 5 %, as ``benchmarks/seed_statistics.py`` prints it, by the groups' deviations:

| seeds | 1 and 1 | 1 and 3 | 1 and 10 |
|---|---|---|---|
| 3 and 3 | 3.5 % | 5.1 % | 6.3 % |
| 3 and 5 | 3.4 % | 3.8 % | 4.7 % |
| 5 and 3 | 4.3 % | 6.0 % | 5.6 % |
| 5 and 5 | 3.9 % | 4.5 % | 4.5 % |
| 10 and 10 | 4.0 % | 4.0 % | 4.3 % |

Its power at an effect of two deviations is 38 % with three seeds a group, 76 with five, 96 with eight.

Not taken: a bootstrap, whose 95 % intervals of ten seeds cover 90 % (84 with heavy tails); and a deviation pooled over
a table's cells, or moderated towards it. It is stronger at n = 3 where all models scatter alike, but at unequal
deviations its size is whatever the quieter cells make of it.

Intervals are over training seeds, conditional on the test set and on the subset of training images. An accuracy is
known to one image only: no sample's deviation is taken as less than that step / sqrt(12), so that equal seeds do not
pass for certainty.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

CONFIDENCE = 0.95
_ROUNDING = 1e-9  # of a mean: what the linearization leaves of a number over itself
EQUIVALENCE_CONFIDENCE = 0.90  # of two one-sided tests at 5 %
SIGNIFICANCE = 0.05

Formula = Callable[[Sequence[float]], float | None]


@dataclass(frozen=True)
class Sample:
    """One number by training seed."""

    values: Mapping[int, float]
    networks: frozenset[str] = frozenset()  # it was measured on, with their parents; samples that share one are paired
    least_sd: float = 0.0  # the smallest standard deviation that is believed

    @property
    def sd(self) -> float | None:
        """The sample standard deviation (n - 1); None below two seeds."""
        return max(statistics.stdev(self.values.values()), self.least_sd) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Interval:
    """A confidence interval, symmetric about the mean."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Estimate:
    """A number and how far its seeds determine it."""

    samples: tuple[Sample, ...]  # several where it is derived
    formula: Formula = field(compare=False)  # makes the number of the samples' means
    mean: float | None = None  # None without seeds, and where the formula has no value
    variances: tuple[float, ...] = ()  # of one seed's contribution, for each independent group; empty below two seeds
    sizes: tuple[int, ...] = ()  # the number of seeds in each of these groups
    num_unmatched: int = 0  # seeds that were left out, as the sample that they are paired with lacks them

    @property
    def values(self) -> Mapping[int, float]:
        """The values by seed; {} of a derived number."""
        return self.samples[0].values if len(self.samples) == 1 else {}

    @property
    def sd(self) -> float | None:
        """The standard deviation over seeds; None of a derived number."""
        return self.samples[0].sd if len(self.samples) == 1 else None

    @property
    def standard_error(self) -> float:
        """The standard error; 0.0 if it is not known, or if nothing scatters, as in a number over itself."""
        found = math.sqrt(sum(v / n for v, n in zip(self.variances, self.sizes, strict=True)))
        return found if found > _ROUNDING * abs(self.mean or 0.0) else 0.0

    @property
    def degrees_of_freedom(self) -> float:
        """Welch-Satterthwaite's degrees of freedom."""
        shares = [(v / n, n - 1) for v, n in zip(self.variances, self.sizes, strict=True)]
        return float(sum(s for s, _ in shares) ** 2 / sum(s**2 / df for s, df in shares))

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval; None below two seeds, and if no seed changes the number."""
        return interval(self, CONFIDENCE)


def single(sample: Sample) -> Estimate:
    """Estimate the mean of one sample."""
    return derive([Estimate((sample,), _only)], _only)


def derive(sources: Sequence[Estimate], formula: Formula) -> Estimate:
    """Derive a number from others by a formula of their means, which is linearized for the variance."""
    samples = tuple(sample for source in sources for sample in source.samples)
    whole = formula if all(source.formula is _only for source in sources) else _nested(sources, formula)
    groups = _paired(samples)
    seeds = _common_seeds(samples, groups)
    num_unmatched = sum(len(sample.values) - len(common) for sample, common in zip(samples, seeds, strict=True))
    if not all(seeds):  # configurations without a common seed: each one's own mean, and no interval
        own = [statistics.fmean(sample.values.values()) for sample in samples if sample.values]
        mean = whole(own) if len(own) == len(samples) else None
        return Estimate(samples, whole, mean, num_unmatched=num_unmatched)
    means = [statistics.fmean(sample.values[s] for s in common) for sample, common in zip(samples, seeds, strict=True)]
    mean, slopes = whole(means), _slopes(whole, means)
    if mean is None or slopes is None or min(map(len, seeds)) < 2:
        return Estimate(samples, whole, mean, num_unmatched=num_unmatched)
    variances = tuple(_variance([(samples[i], slopes[i]) for i in group], seeds[group[0]]) for group in groups)
    sizes = tuple(len(seeds[group[0]]) for group in groups)
    return Estimate(samples, whole, mean, variances, sizes, num_unmatched)


def difference(better: Estimate, baseline: Estimate) -> Estimate:
    """By how much one number exceeds another."""
    return derive([better, baseline], lambda pair: pair[0] - pair[1])


def interval(estimate: Estimate, confidence: float) -> Interval | None:
    """The interval at a confidence; None below two seeds, and if no seed changes the number."""
    if estimate.mean is None or estimate.standard_error == 0:
        return None
    from scipy.special import stdtrit  # a third of the start-up of scipy.stats

    half_width = float(stdtrit(estimate.degrees_of_freedom, (1 + confidence) / 2)) * estimate.standard_error
    return Interval(estimate.mean - half_width, estimate.mean + half_width)


def p_value(estimate: Estimate, expected: float = 0.0) -> float | None:
    """The two-sided p-value of the mean if ``expected`` were true; None if the interval is not known."""
    if estimate.mean is None or estimate.standard_error == 0:
        return None
    from scipy.special import stdtr

    t = abs(estimate.mean - expected) / estimate.standard_error
    return float(2 * stdtr(estimate.degrees_of_freedom, -t))


def holm(p_values: Sequence[float], num_tests: int | None = None) -> list[float]:
    """Adjust p-values by Holm's step-down method; ``num_tests`` is the size of a family with more tests than these."""
    num_tests = num_tests or len(p_values)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for position, i in enumerate(order):
        largest = max(largest, min(1.0, (num_tests - position) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def rank_intervals(estimates: Sequence[Estimate]) -> list[tuple[int, int]]:
    """The best and the worst rank that each estimate may have, 1 being the highest: from 1 + the number that are
    significantly better to k - the number that are significantly worse, by Welch's t with Holm over all pairs."""
    pairs = [(i, j) for i in range(len(estimates)) for j in range(i)]
    gaps = [difference(estimates[i], estimates[j]) for i, j in pairs]
    adjusted = holm([1.0 if (p := p_value(gap)) is None else p for gap in gaps])
    num_better, num_worse = [0] * len(estimates), [0] * len(estimates)
    for (i, j), gap, p in zip(pairs, gaps, adjusted, strict=True):
        if p < SIGNIFICANCE:
            better, worse = (i, j) if (gap.mean or 0.0) > 0 else (j, i)
            num_better[worse] += 1
            num_worse[better] += 1
    return [(1 + b, len(estimates) - w) for b, w in zip(num_better, num_worse, strict=True)]


# -- how a derived number follows its samples


def _only(means: Sequence[float]) -> float:
    return means[0]


def _nested(sources: Sequence[Estimate], formula: Formula) -> Formula:
    """The formula of all samples' means: each source's own formula first, then the one of the sources."""

    def whole(means: Sequence[float]) -> float | None:
        found, begin = [], 0
        for source in sources:
            end = begin + len(source.samples)
            value = source.formula(means[begin:end])
            if value is None:
                return None
            found.append(value)
            begin = end
        return formula(found)

    return whole


def _paired(samples: Sequence[Sample]) -> list[list[int]]:
    """The indices of the samples, grouped by common networks, also through others."""
    groups: list[tuple[set[str], list[int]]] = []
    for i, sample in enumerate(samples):
        joined = (set(sample.networks), [i])
        for group in [group for group in groups if group[0] & sample.networks]:
            groups.remove(group)
            joined = (joined[0] | group[0], group[1] + joined[1])
        groups.append(joined)
    return [sorted(places) for _, places in groups]


def _common_seeds(samples: Sequence[Sample], groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """The seeds of each sample that all samples of its group have."""
    seeds: list[list[int]] = [[] for _ in samples]
    for group in groups:
        common = sorted(set.intersection(*(set(samples[i].values) for i in group)))
        for i in group:
            seeds[i] = common
    return seeds


def _slopes(formula: Formula, means: Sequence[float]) -> list[float] | None:
    """The derivative by each mean, by central differences; None where the formula has no value."""
    if formula is _only:
        return [1.0]
    slopes = []
    for i, mean in enumerate(means):
        step = 1e-5 * max(1e-3, abs(mean))
        high, low = (formula([*means[:i], mean + side, *means[i + 1 :]]) for side in (step, -step))
        if high is None or low is None:
            return None
        slopes.append((high - low) / (2 * step))
    return slopes


def _variance(parts: Sequence[tuple[Sample, float]], seeds: Sequence[int]) -> float:
    """The variance of one seed's contribution to the number, over a group of paired samples."""
    contributions = [sum(slope * sample.values[seed] for sample, slope in parts) for seed in seeds]
    least = sum((slope * sample.least_sd) ** 2 for sample, slope in parts)
    scatter = statistics.variance(contributions)
    scale = max(map(abs, contributions))
    return max(least, 0.0 if scatter < (1e-9 * scale) ** 2 else scatter)
