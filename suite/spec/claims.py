"""A paper's claim as data: its statement, where it stands, and which cells of the leaderboards it speaks of.

Claim -> Effect (what must be above zero, equal to it, or not below it) -> Term (a weighted number) -> a cell of a
suite's table. The judge is ``leaderboards.judged_claims``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from suite.base.frozen import Frozen
from suite.spec.profile import Place
from suite.spec.suite import Paper

Relation = Literal["greater", "equal", "no worse"]
OfHeads = Literal["mean", "distance to nearest", "log aspect", "mass one step away"]


class Logged(Frozen):
    """A number that runs log while they train, in place of the one that their cell shows.

    Args:
        metric: a field of ``metrics.jsonl``, or "between" for the attention between patches that runs of kind "maps"
            record, before the training (``at`` is 0) and after it.
        layer: number of the layer, from 1; None for a metric that is one number.
        of_heads: statistic of a layer's heads: the mean; of "centers", the mean distance to the nearest other
            center, in patches; of "precisions", the mean ln(long axis / short axis) of the Gaussians; of "between",
            the percentage that a patch pays to the patches beside it, the diagonal ones included, and not to itself.
        at: the share of the training at whose end it is read: the first line that is at least so far; 0 is before the
            first step.
    """

    metric: str
    layer: PositiveInt | None = None
    of_heads: OfHeads = "mean"
    at: float = Field(default=1.0, ge=0, le=1)


class Term(Frozen):
    """One number of an effect: ``weight`` times what stands at the place, or what its runs have logged."""

    weight: float
    suite: str
    place: Place
    logged: Logged | None = None


class Effect(Frozen):
    """A weighted sum of numbers, and a constant.

    Args:
        terms: the weighted numbers.
        constant: the number that is added to them.
        paper: the paper's effect, where its tables do not print all of the numbers; None: it is computed from them;
            where they print none either, only the effect's direction is known.
        log_odds: whether each accuracy counts as its log odds, ln(p / (1 - p)), instead of in points.
        control: the positive control: an effect that must be above zero for this one to be testable.
    """

    terms: tuple[Term, ...] = Field(min_length=1)
    constant: float = 0.0
    paper: float | None = None
    log_odds: bool = False
    control: Effect | None = None

    def __sub__(self, other: Effect) -> Effect:
        """By how much this effect exceeds another."""
        turned = scaled(other, -1)
        paper = None if self.paper is None or turned.paper is None else self.paper + turned.paper
        return Effect(terms=self.terms + turned.terms, constant=self.constant + turned.constant, paper=paper)


class Claim(Frozen):
    """One sentence of a paper about numbers that the leaderboards hold.

    Args:
        name: a name that is unique among all papers' claims, of the line in ``claims.csv``.
        section: the place in the paper, such as "Sec. 4, Table 2".
        statement: the claim in our words.
        effects: differences that must all hold; the paper finds them positive, or zero for "equal".
        relation: "greater": above zero; "equal": not farther from zero than ``margin``; "no worse": not so far below.
        margin: the largest distance from zero that "equal" and "no worse" allow, in the effects' unit.
        unit: the effects' unit: percentage points, or what the cells show.
        primary: the date, such as 2026-11-25, on which the claim was named the paper's primary one, before its runs
            started: it is tested by itself. Empty: it is adjusted with the paper's others.
        after: name of the primary claim that must hold before this one is tested.
        not_testable: why a scale cannot test the claim, by the scale's name, said before its runs.
    """

    name: str
    section: str
    statement: str
    effects: tuple[Effect, ...] = Field(min_length=1)
    relation: Relation = "greater"
    margin: PositiveFloat = 1.0
    unit: str = "points"
    primary: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    after: str = ""
    not_testable: Mapping[str, str] = Field(default_factory=dict)

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites whose cells it speaks of."""
        return tuple(dict.fromkeys(term.suite for effect in self.effects for term in effect.terms))


class NotJudged(Frozen):
    """A quantitative sentence that no cell can decide, and why."""

    section: str
    statement: str
    reason: str


class PaperClaims(Frozen):
    """All that one paper claims of numbers."""

    name: str  # of the page, such as "convit"
    title: str
    claims: tuple[Claim, ...]
    not_judged: tuple[NotJudged, ...] = ()


def claim(
    section: str, statement: str, *effects: Effect, control: Effect | None = None, **fields: Any
) -> partial[Claim]:
    """Make a claim that still lacks its name: its key among the claims that ``paper_claims`` takes.

    Args:
        section, statement, effects, fields: fields of ``Claim``.
        control: the positive control of all its effects.
    """
    controlled = tuple(effect.model_copy(control=control) for effect in effects)
    return partial(Claim, section=section, statement=statement, effects=controlled, **fields)


def paper_claims(paper: Paper, *claims: Mapping[str, partial[Claim]]) -> PaperClaims:
    """Name the claims of a paper, in their order, by their keys."""
    named = tuple(make(name=name) for of in claims for name, make in of.items())
    return PaperClaims(name=paper.name, title=paper.title, claims=named)


def number(suite: str, row: tuple[str, ...] | str, column: str, table: str = "", **reading: Any) -> Effect:
    """Make the effect that is one number.

    Args:
        suite, row, column, table: cell; "" is the suite's first table.
        reading: fields of ``Logged``, for what the cell's runs have logged in place of the number that it shows.
    """
    place = Place(row=(row,) if isinstance(row, str) else row, column=column, table=table)
    logged = Logged(**reading) if reading else None
    return Effect(terms=(Term(weight=1.0, suite=suite, place=place, logged=logged),))


def scaled(effect: Effect, factor: float) -> Effect:
    """Multiply an effect."""
    return Effect(
        terms=tuple(term.model_copy(weight=factor * term.weight) for term in effect.terms),
        constant=factor * effect.constant,
        paper=None if effect.paper is None else factor * effect.paper,
    )


def mean_of(effects: Iterable[Effect]) -> Effect:
    """Average effects, of which there is at least one."""
    effects = list(effects)
    total = reduce(lambda total, other: total - scaled(other, -1), effects)
    return scaled(total, 1 / len(effects))


def slope_weights(shares: Sequence[float]) -> list[float]:
    """Weights of the least-squares slope on -ln(share), positive where a number rises as images get scarce."""
    logs = [-math.log(share) for share in shares]
    center = statistics.fmean(logs)
    total = sum((x - center) ** 2 for x in logs)
    return [(x - center) / total for x in logs]


def trend(effects: Mapping[float, Effect]) -> tuple[Effect, Effect]:
    """Make the least-squares slope of effects, by share of the images, on -ln(share): in points and in log odds.

    Accuracy itself moves with the share, so that "greater where images are scarce" depends on the scale: it needs both.
    """
    weights = zip(slope_weights(list(effects)), effects.values(), strict=True)
    slope = mean_of(scaled(effect, round(len(effects) * weight, 12)) for weight, effect in weights)
    return slope, slope.model_copy(log_odds=True)


def above(effect: Effect, limit: float) -> Effect:
    """By how much an effect exceeds a limit that the claim names. A tolerance is a margin of "no worse" instead."""
    paper = None if effect.paper is None else effect.paper - limit
    return effect.model_copy(constant=effect.constant - limit, paper=paper)


def below(effect: Effect, limit: float) -> Effect:
    """By how much an effect falls short of a limit."""
    return above(scaled(effect, -1), -limit)
