"""The rules of judgment: plain functions on a vector of one number a seed, and on predictions.

An effect is a vector: one configuration's value less the other's of the same seed, or any weighted sum of a seed's
values, as ``estimates.derive`` makes it. Every test is Student's on such a vector, as runs of one seed share images and
their order; several shares of the images become one number a seed first. Not taken: Welch's test (too wide where seeds
pair), bootstraps of few seeds (their 95 % intervals cover 72 to 91), mixed models, tests that treat a model's shares as
independent. ``benchmarks/seed_statistics.py`` prints coverage, size and power.

A vector that nothing scatters has no test: an interval of None, p-values of 1. ``least_sd`` is the smallest deviation
that is believed, as an accuracy is known to one image only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
FEWEST_SHOWN = 3  # seeds for an interval
FEWEST_JUDGED = 5
CONTROL = 0.005  # one-sided, of a positive control
FIRST_LOOK = 5
WIDENING = 1.15  # of the interval where seeds were added until it was narrow
POCOCK = 0.0294  # of both looks where seeds were added after the first
PLANNED_LOOKS: dict[tuple[int, ...], tuple[float, ...]] = {(5, 8): (0.01, 0.045)}  # seeds at each look -> its level
_ROUNDING = 1e-9  # of the largest number: what linearization leaves of a number over itself


@dataclass(frozen=True)
class Interval:
    """A confidence interval, symmetric about the mean."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


class Sides(NamedTuple):
    """One-sided p-values: of what a claim says, and of its opposite."""

    holds: float
    fails: float

    @property
    def p(self) -> float:
        """The two-sided p-value."""
        return min(1.0, 2 * min(self))


def to_log_odds(percent: float) -> float:
    """The log odds of a percentage between 0 and 100."""
    return math.log(percent / (100 - percent))


# -- a vector -> its interval and tests


def standard_error(d: Sequence[float], least_sd: float = 0.0) -> float:
    """The standard error of the mean; 0.0 below two seeds, and if nothing scatters."""
    if len(d) < 2:
        return 0.0
    scatter = statistics.stdev(d)
    scatter = scatter if scatter > _ROUNDING * max(map(abs, d)) else 0.0
    return max(scatter, least_sd) / math.sqrt(len(d))


def interval(d: Sequence[float], least_sd: float = 0.0, widening: float = 1.0) -> Interval | None:
    """The 95 % interval of the mean; None below three seeds, and if nothing scatters."""
    error = standard_error(d, least_sd)
    if len(d) < FEWEST_SHOWN or error == 0:
        return None
    from scipy.special import stdtrit  # a third of the start-up of scipy.stats

    mean, half_width = statistics.fmean(d), widening * error * float(stdtrit(len(d) - 1, (1 + CONFIDENCE) / 2))
    return Interval(mean - half_width, mean + half_width)


def t_test(d: Sequence[float], limit: float = 0.0, least_sd: float = 0.0, widening: float = 1.0) -> Sides:
    """Test by Student's t whether the mean is above a limit, and whether it is below.

    Args:
        d: one number a seed.
        limit: the limit; that of "no worse" is minus its margin.
        least_sd: the smallest deviation that is believed.
        widening: factor on the standard error.
    """
    error = widening * standard_error(d, least_sd)
    if error == 0:
        return Sides(1.0, 1.0)
    from scipy.special import stdtr

    t = (statistics.fmean(d) - limit) / error
    return Sides(*(float(p) for p in stdtr(len(d) - 1, (-t, t))))


def within(d: Sequence[float], limits: tuple[float, float], least_sd: float = 0.0) -> Sides:
    """Test whether the mean is between two limits, and whether it is beyond: p < 0.05 where the 95 % interval lies
    between them, or beyond one. No worse than a margin is between minus that margin and infinity."""
    above, below = (t_test(d, limit, least_sd) for limit in limits)
    return Sides(max(above.holds, below.fails), min(above.fails, below.holds))


def passes_control(d: Sequence[float], least_sd: float = 0.0) -> bool:
    """Whether a positive control is above zero. It must be orthogonal to the effect that it stands for, such as the
    mean of both models where the effect is their difference: else it biases that effect."""
    return len(d) >= FEWEST_JUDGED and t_test(d, least_sd=least_sd).holds < CONTROL


def all_of(effects: Sequence[Sides], num_untestable: int = 0) -> Sides:
    """The sides of a claim whose effects must all hold: it holds by its weakest one, and fails by its strongest
    opposite, of as many as can be tested."""
    holds = 1.0 if num_untestable else max(side.holds for side in effects)
    return Sides(holds, min(1.0, max(1, len(effects)) * min((side.fails for side in effects), default=1.0)))


def adjust(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of a paper's testable claims but its primary ones, by Benjamini and Hochberg."""
    if not p_values:
        return []
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(p_values)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method: of ranks, which compare all pairs."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    steps = (min(1.0, (len(order) - position) * p_values[i]) for position, i in enumerate(order))
    adjusted = dict(zip(order, accumulate(steps, max), strict=True))
    return [adjusted[i] for i in range(len(order))]


def levels(looks: tuple[int, ...]) -> tuple[float, ...]:
    """The level of each of one or two looks at a result, by the seeds that it had; an effect is found where one of them
    is passed."""
    return PLANNED_LOOKS.get(looks, (POCOCK, POCOCK) if len(looks) == 2 else (SIGNIFICANCE,))


# -- predictions: right or wrong by seed and image


class OverImages(NamedTuple):
    """A difference of accuracies for a population of seeds and images, as a fraction."""

    mean: float
    standard_error: float
    degrees_of_freedom: float
    p: float


def over_images(difference: npt.NDArray[np.float64]) -> OverImages:
    """Test a difference for other images than these, too; on one test set the vector of its means by seed is enough.

    Args:
        difference: (seeds, images), whether one model is right less whether the other of the same seed is.
    """
    from scipy.special import stdtr

    n, num_images = difference.shape
    by_seeds, by_images, mean = difference.mean(axis=1), difference.mean(axis=0), float(difference.mean())
    rest = difference - by_seeds[:, None] - by_images + mean
    of_seeds, of_images = float(by_seeds.var(ddof=1)) / n, float(by_images.var(ddof=1)) / num_images
    of_rest = float((rest**2).sum()) / ((n - 1) * (num_images - 1) * n * num_images)
    variance = max(of_seeds + of_images - of_rest, of_seeds, of_images)
    if variance == 0:
        return OverImages(mean, 0.0, n - 1.0, 1.0)
    df = max(n - 1.0, variance**2 / (of_seeds**2 / (n - 1) + of_images**2 / (num_images - 1)))
    return OverImages(mean, math.sqrt(variance), df, float(2 * stdtr(df, -abs(mean) / math.sqrt(variance))))


def over_classes(difference: npt.NDArray[np.float64], labels: npt.NDArray[Any]) -> dict[int, tuple[OverImages, float]]:
    """The difference on each class's images, with its p-value adjusted over the classes.

    Args:
        difference: (seeds, images), as ``over_images`` has it.
        labels: (images,) their classes.
    """
    found = {int(label): over_images(difference[:, labels == label]) for label in sorted(set(labels.tolist()))}
    adjusted = adjust([one.p for one in found.values()])
    return {label: (one, p) for (label, one), p in zip(found.items(), adjusted, strict=True)}
