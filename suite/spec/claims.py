"""A paper's claim as data: its statement, where it stands, and which cells of the leaderboards it speaks of.

Claim -> Effect (what must be above zero, or equal to it) -> Term (a weighted number) -> a cell of a suite's table. The
judge is ``leaderboards.judged_claims``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from suite.base.frozen import Frozen
from suite.spec.profile import Place

Relation = Literal["greater", "equal"]


class Logged(Frozen):
    """A number that runs log while they train, in place of the one that their cell shows.

    Args:
        metric: a field of ``metrics.jsonl``; of one that is logged by layer and head, the mean over heads.
        layer: counted from 1; None for a metric that is one number.
        at: the share of the training at whose end it is read: the first line that is at least so far; 0 is before the
            first step.
    """

    metric: str
    layer: PositiveInt | None = None
    at: float = Field(default=1.0, ge=0, le=1)


class Term(Frozen):
    """One number of an effect: ``weight`` times what stands at the place, or what its runs have logged."""

    weight: float
    suite: str
    place: Place
    logged: Logged | None = None


class Effect(Frozen):
    """A weighted sum of numbers, and a constant.

    ``paper`` is what the paper finds, where its tables do not print all of the numbers; None: it is computed from
    them; where they print none either, only the effect's direction is known.
    """

    terms: tuple[Term, ...] = Field(min_length=1)
    constant: float = 0.0
    paper: float | None = None

    def __sub__(self, other: Effect) -> Effect:
        """By how much this effect exceeds another."""
        turned = [term.model_copy(update={"weight": -term.weight}) for term in other.terms]
        known = self.paper is not None and other.paper is not None
        paper = (self.paper or 0.0) - (other.paper or 0.0) if known else None
        return Effect(terms=(*self.terms, *turned), constant=self.constant - other.constant, paper=paper)


class Claim(Frozen):
    """One sentence of a paper about numbers that the leaderboards hold.

    Args:
        name: unique among all papers' claims; names the line in ``claims.csv``.
        section: where the paper claims it, such as "Sec. 4, Table 2".
        statement: the claim in our words.
        effects: each of them must hold. They are written so that the paper finds them positive, or zero for "equal".
        relation: "greater": above zero; "equal": not farther from zero than ``margin``.
        margin: the largest distance from zero that is "equal", in the effects' unit.
        unit: the effects' unit: percentage points, or what the cells show.
    """

    name: str
    section: str
    statement: str
    effects: tuple[Effect, ...] = Field(min_length=1)
    relation: Relation = "greater"
    margin: PositiveFloat = 1.0
    unit: str = "points"


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


def number(suite: str, row: tuple[str, ...] | str, column: str, table: str = "", weight: float = 1.0) -> Effect:
    """Make the effect that is one cell's number.

    Args:
        suite: whose table.
        row: its key; of a single column a word.
        column: of the cell.
        table: of the suite; "" is its first one.
        weight: that the number counts with.
    """
    place = Place(row=(row,) if isinstance(row, str) else row, column=column, table=table)
    return Effect(terms=(Term(weight=weight, suite=suite, place=place),))
