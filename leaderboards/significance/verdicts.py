"""Verdicts of our seeds on a paper's number and on a paper's claim, and how many seeds would be enough for one.

A printed number is the mean of the paper's own seeds, rounded: it is no truth. Against it a cell is

- **reproduced** if its 90 % interval lies within one point of it (two one-sided tests at 5 %),
- **contradicted** if it is not, and the paper's number, less half a printed unit, would be improbable (p < .05, Holm
  over the table) as the mean of that many more seeds of the same deviation (so 1/n + 1/m in place of 1/n),
- else **undecided**.

A claim that an effect is positive, of which the paper finds D, is

- **reproduced** if the effect is above zero (two-sided p < .05, Holm over the paper's claims), and "smaller" if its
  95 % interval ends below D / 2,
- **contradicted** if its interval does not exclude zero but lies below D / 2 (p < .05, Holm again),
- else **undecided**.

A claim that two numbers are equal is reproduced or contradicted if the difference is significantly less, or more, than
the margin. A claim of several effects holds where all hold. Below five seeds a group nothing is judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leaderboards.significance.estimates import (
    EQUIVALENCE_CONFIDENCE,
    SIGNIFICANCE,
    Estimate,
    holm,
    interval,
    p_value,
)
from leaderboards.significance.power import seeds_needed

Verdict = Literal["reproduced", "contradicted", "undecided"]
ClaimVerdict = Literal[
    "reproduced", "reproduced, smaller", "contradicted", "undecided", "too few seeds", "no runs", "failed runs"
]
MARGIN = 1.0  # points
FEWEST_SEEDS = 5


# -- a cell against the number that the paper prints


@dataclass(frozen=True)
class Printed:
    """A number as a paper prints it."""

    value: float
    half_unit: float  # of its last digit
    num_seeds: int = 1  # that it is the mean of
    margin: float = MARGIN  # one point in its unit


def judge_table(cells: Sequence[tuple[Estimate, Printed]]) -> list[tuple[Verdict, float | None]]:
    """The verdict of each cell of one table, and the adjusted p-value of its contradiction (None for one seed)."""
    found = [p_value_of_paper(estimate, printed) for estimate, printed in cells]
    adjusted = iter(holm([p for p in found if p is not None]))
    p_values = [None if p is None else next(adjusted) for p in found]
    return [(_verdict(*cell, p), p) for cell, p in zip(cells, p_values, strict=True)]


def p_value_of_paper(estimate: Estimate, printed: Printed) -> float | None:
    """The two-sided p-value of the paper's number as the mean of further seeds like ours; None below two seeds."""
    if estimate.mean is None or not estimate.standard_error:
        return None
    from scipy.special import stdtr

    further = estimate.standard_error**2 * (1 + estimate.sizes[0] / printed.num_seeds)
    t = max(0.0, abs(estimate.mean - printed.value) - printed.half_unit) / math.sqrt(further)
    return float(2 * stdtr(estimate.degrees_of_freedom, -t))


def _verdict(estimate: Estimate, printed: Printed, p: float | None) -> Verdict:
    reach = interval(estimate, EQUIVALENCE_CONFIDENCE)
    if reach and printed.value - printed.margin < reach.low and reach.high < printed.value + printed.margin:
        return "reproduced"
    return "contradicted" if p is not None and p < SIGNIFICANCE else "undecided"


# -- a claim


@dataclass(frozen=True)
class Measured:
    """One effect of a claim, ours and the paper's."""

    estimate: Estimate
    paper: float | None  # None where only its direction is known
    margin: float | None = None  # of a claim of equality; None if the claim is that the effect is above zero

    @property
    def p_holds(self) -> float:
        """The p-value if the effect were zero, or as large as the margin; 1 where it points the other way."""
        mean = self.estimate.mean
        if mean is None or self.estimate.standard_error == 0:
            return 1.0
        if self.margin is None:
            return p_value(self.estimate) or 0.0 if mean > 0 else 1.0
        if abs(mean) >= self.margin:
            return 1.0
        return min(1.0, (p_value(self.estimate, math.copysign(self.margin, mean)) or 0.0) / 2)

    @property
    def p_fails(self) -> float:
        """The p-value if the effect were at least half the paper's, or no larger than the margin."""
        mean = self.estimate.mean
        if mean is None or self.estimate.standard_error == 0:
            return 1.0
        if self.margin is not None:
            return p_value(self.estimate, math.copysign(self.margin, mean)) or 0.0 if abs(mean) > self.margin else 1.0
        reach = self.estimate.interval
        if reach is None or reach.low > 0 or mean >= self.half:
            return 1.0
        return p_value(self.estimate, self.half) or 0.0

    @property
    def half(self) -> float:
        """Half the effect of the paper; 0 where only its direction is known."""
        return (self.paper or 0.0) / 2

    @property
    def is_smaller(self) -> bool:
        """Whether it is significantly less than half the paper's."""
        reach = self.estimate.interval
        return self.margin is None and reach is not None and reach.high < self.half

    @property
    def num_seeds(self) -> int:
        """The number of seeds of the sample with the fewest."""
        return min(len(sample.values) for sample in self.estimate.samples)


def judge_claims(
    claims: Sequence[Sequence[Measured]], num_claims: int | None = None
) -> list[tuple[ClaimVerdict, float | None]]:
    """The verdict of each claim of one paper at one scale, and the adjusted p-value behind it.

    Args:
        claims: the effects of each claim, all of which must hold.
        num_claims: the number of the paper's claims, where the scale shows fewer.
    """
    enough = [i for i, effects in enumerate(claims) if min(effect.num_seeds for effect in effects) >= FEWEST_SEEDS]
    holds = holm([max(effect.p_holds for effect in claims[i]) for i in enough], num_claims)
    fails = holm([min(1.0, len(claims[i]) * min(effect.p_fails for effect in claims[i])) for i in enough], num_claims)
    verdicts = dict(zip(enough, map(_judge, (claims[i] for i in enough), holds, fails), strict=True))
    return [
        verdicts.get(i) or ("too few seeds" if any(effect.num_seeds for effect in effects) else "no runs", None)
        for i, effects in enumerate(claims)
    ]


def _judge(effects: Sequence[Measured], p_holds: float, p_fails: float) -> tuple[ClaimVerdict, float | None]:
    if p_holds < SIGNIFICANCE:
        return ("reproduced, smaller" if any(effect.is_smaller for effect in effects) else "reproduced"), p_holds
    return ("contradicted", p_fails) if p_fails < SIGNIFICANCE else ("undecided", p_holds)


def weakest(effects: Sequence[Measured]) -> Measured:
    """The effect that decides a claim: the one whose data speak least for it."""
    return max(effects, key=lambda effect: (effect.p_holds, -(effect.estimate.mean or 0.0)))


# -- how many seeds would decide


def seeds_to_hold(effect: Measured) -> int | None:
    """The seeds that find a claim's effect, by ``seeds_needed``; None where it points the other way or has too few."""
    estimate = effect.estimate
    if estimate.mean is None or not estimate.standard_error or (effect.margin is None and estimate.mean <= 0):
        return None
    return seeds_needed(estimate.mean, estimate.variances, effect.margin)
