"""Verdicts of our seeds on a paper's number and on a paper's claim, and how many seeds would be enough for one.

A printed number is the mean of the paper's own seeds, rounded: it is no truth. Against it a cell is

- **reproduced** if its 90 % interval lies within one point of it (two one-sided tests at 5 %),
- **contradicted** if it is not, and the paper's number, less half a printed unit, would be improbable (p < .05,
  adjusted over the table) as the mean of that many more seeds of the same deviation (so 1/n + 1/m in place of 1/n),
- else **undecided**.

A claim says that effects are above zero, within a margin of it, or no worse than a margin below; it holds where all of
them do. Away from the paper's scale nothing is said of sizes: **same direction** and **opposite direction** (adjusted
p < .05), else **unresolved**. At the paper's own scale a claim that an effect is positive, of which the paper finds D,
is **reproduced** if it is above zero, "smaller" if its interval ends below D / 2, **contradicted** if it is not and is
significantly below D / 2, else **undecided**.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

from leaderboards.significance.estimates import Estimate
from leaderboards.significance.power import seeds_needed
from leaderboards.significance.rules import FEWEST_JUDGED, SIGNIFICANCE, Sides, adjust, all_of, within

Verdict = Literal["reproduced", "contradicted", "undecided"]
ClaimVerdict = Literal[
    "same direction", "opposite direction", "unresolved", "not testable here", "reproduced", "reproduced, smaller",
    "contradicted", "undecided", "too few seeds", "no runs", "failed runs",
]  # fmt: skip
HOLDING: tuple[ClaimVerdict, ...] = ("same direction", "reproduced", "reproduced, smaller")
MARGIN = 1.0  # points


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
    adjusted = iter(adjust([p for p in found if p is not None]))
    p_values = [None if p is None else next(adjusted) for p in found]
    return [(_verdict(*cell, p), p) for cell, p in zip(cells, p_values, strict=True)]


def p_value_of_paper(estimate: Estimate, printed: Printed) -> float | None:
    """The two-sided p-value of the paper's number as the mean of further seeds like ours; None below two seeds."""
    if estimate.mean is None or not estimate.standard_error:
        return None
    from scipy.special import stdtr

    num_seeds = len(estimate.values)
    further = estimate.standard_error**2 * (1 + num_seeds / printed.num_seeds)
    t = max(0.0, abs(estimate.mean - printed.value) - printed.half_unit) / math.sqrt(further)
    return float(2 * stdtr(num_seeds - 1, -t))


def _verdict(estimate: Estimate, printed: Printed, p: float | None) -> Verdict:
    gaps = [value - printed.value for value in estimate.vector]
    if within(gaps, (-printed.margin, printed.margin), estimate.least_sd).holds < SIGNIFICANCE:
        return "reproduced"
    return "contradicted" if p is not None and p < SIGNIFICANCE else "undecided"


@dataclass(frozen=True)
class Measured:
    """One effect of a claim, ours and the paper's.

    Args:
        estimate: ours.
        paper: the paper's; None where only its direction is known.
        relation: relation that the claim states: "greater" than zero, "equal" to it, "no worse".
        margin: the margin of the two others.
        is_at_papers_scale: whether the effect's size is judged by the paper's.
        why_untestable: why this effect can say nothing for the claim, nor against it; "" if it can.
    """

    estimate: Estimate
    paper: float | None = None
    relation: Literal["greater", "equal", "no worse"] = "greater"
    margin: float = MARGIN
    is_at_papers_scale: bool = False
    why_untestable: str = ""

    @property
    def limits(self) -> tuple[float, float]:
        """The limits between which the claim says that the effect is."""
        low = 0.0 if self.relation == "greater" else -self.margin
        return low, self.margin if self.relation == "equal" else math.inf

    @property
    def sides(self) -> Sides:
        """The one-sided p-values of what the claim says, and of its opposite."""
        sides = within(self.estimate.vector, self.limits, self.estimate.least_sd)
        if self.relation != "greater" or not self.is_at_papers_scale:
            return sides
        return Sides(sides.holds, 1.0 if 2 * sides.holds < SIGNIFICANCE else self.estimate.t_test(self._half).fails)

    @property
    def _half(self) -> float:
        """Half the effect of the paper; 0 where only its direction is known."""
        return (self.paper or 0.0) / 2

    @property
    def is_smaller(self) -> bool:
        """Whether it is significantly less than half the paper's."""
        return self.relation == "greater" and 2 * self.estimate.t_test(self._half).fails < SIGNIFICANCE

    @property
    def passes(self) -> bool:
        """Whether the effect by itself is what the claim says, without an adjustment."""
        return not self.why_untestable and 2 * self.sides.holds < SIGNIFICANCE

    @property
    def points_the_other_way(self) -> bool:
        """Whether its mean is not what the claim says, significantly or not."""
        mean, (low, high) = self.estimate.mean, self.limits
        return mean is not None and not low <= mean <= high

    @property
    def num_seeds(self) -> int:
        return len(self.estimate.values)

    @property
    def seeds_needed(self) -> int | None:
        """The seeds that find the effect; None where it points the other way or is unknown."""
        mean, sd = self.estimate.mean, self.estimate.sd
        if mean is None or not sd or self.points_the_other_way:
            return None
        shift = self.margin if self.relation == "no worse" else 0.0
        return seeds_needed(mean + shift, sd, self.margin if self.relation == "equal" else None)


@dataclass(frozen=True)
class Question:
    """A claim's effects, what is settled of it before they are looked at, and then the verdict.

    Args:
        name: the claim's name.
        effects: its effects, all of which must hold.
        settled: a verdict that no number can change, such as "failed runs"; None: it is judged if there are seeds.
        is_primary: whether it is tested by itself.
        after: name of the claim that must hold before; "" for none.
        level: level of its test: lower than 0.05 where a frozen plan has several looks at the result.
        verdict: the verdict, once it is judged.
        p: the p-value of the deciding effect by itself; None if nothing is tested.
        adjusted: the claim's p-value over its family, a primary claim's alone; times 0.05 over its level.
        num_tests: the number of claims in the family: 1 of a primary claim, 0 if nothing is tested.
    """

    name: str
    effects: Sequence[Measured]
    settled: ClaimVerdict | None = None
    is_primary: bool = False
    after: str = ""
    level: float = SIGNIFICANCE
    verdict: ClaimVerdict = "no runs"
    p: float | None = None
    adjusted: float | None = None
    num_tests: int = 0

    @property
    def testable(self) -> list[Measured]:
        return [effect for effect in self.effects if not effect.why_untestable]

    @property
    def sides(self) -> Sides:
        return Sides(*(min(1.0, p * SIGNIFICANCE / self.level) for p in self._unadjusted))

    @cached_property
    def _unadjusted(self) -> Sides:
        """Whatever its level."""
        return all_of([effect.sides for effect in self.testable], len(self.effects) - len(self.testable))

    @cached_property
    def deciding(self) -> tuple[Measured, float]:
        """The effect that decides, and its two-sided p-value: the one that speaks least for a claim that rather holds,
        most against another."""
        effects, sides = self.testable or self.effects, self._unadjusted
        if sides.holds <= sides.fails:
            found = max(effects, key=lambda effect: (effect.sides.holds, -(effect.estimate.mean or 0.0)))
            return found, min(1.0, 2 * found.sides.holds)
        found = min(effects, key=lambda effect: effect.sides.fails)
        return found, min(1.0, 2 * found.sides.fails)

    @property
    def unjudged(self) -> ClaimVerdict | None:
        """The verdict without a test; None if there is one."""
        if self.settled:
            return self.settled
        if all(effect.estimate.mean is None for effect in self.effects):
            return "too few seeds" if any(effect.estimate.num_unmatched for effect in self.effects) else "no runs"
        if min(effect.num_seeds for effect in self.effects) < FEWEST_JUDGED:
            return "too few seeds"
        return None if self.testable else "not testable here"


AnyQuestion = TypeVar("AnyQuestion", bound=Question)


def judge_claims(claims: Sequence[AnyQuestion]) -> list[AnyQuestion]:
    """Judge the claims of one paper at one scale, in their order; a claim that comes after another follows it."""
    family = [claim.sides.p for claim in claims if not (claim.unjudged or claim.is_primary)]
    adjusted = iter(adjust(family))
    judged: list[AnyQuestion] = []
    for claim in claims:
        if claim.unjudged:
            judged.append(replace(claim, verdict=claim.unjudged))
            continue
        p, num_tests = (claim.sides.p, 1) if claim.is_primary else (next(adjusted), len(family))
        if claim.after and claim.after not in {one.name for one in judged if one.verdict in HOLDING}:
            judged.append(replace(claim, verdict=_leave_open(claim)))
        else:
            verdict = _judge(claim, p)
            judged.append(replace(claim, verdict=verdict, p=claim.deciding[1], adjusted=p, num_tests=num_tests))
    return judged


def _judge(claim: Question, p: float) -> ClaimVerdict:
    sides, is_at_papers_scale = claim.sides, claim.effects[0].is_at_papers_scale
    if p < SIGNIFICANCE and sides.fails < sides.holds:
        return "contradicted" if is_at_papers_scale else "opposite direction"
    if len(claim.testable) < len(claim.effects):
        return "not testable here"
    if p >= SIGNIFICANCE:
        return _leave_open(claim)
    if is_at_papers_scale:
        return "reproduced, smaller" if any(effect.is_smaller for effect in claim.effects) else "reproduced"
    return "same direction"


def _leave_open(claim: Question) -> ClaimVerdict:
    return "undecided" if claim.effects[0].is_at_papers_scale else "unresolved"
