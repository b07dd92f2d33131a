"""Boards -> the verdict on every claim of the papers, at one scale.

A claim's numbers come from the cells that it names, in any suite, or from the logs of the runs behind them. It is
judged at a scale whose profile fills all of its places.
"""

import contextlib
import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import in_points, is_accuracy
from leaderboards.significance.estimates import Estimate, derive, single
from leaderboards.significance.rules import FEWEST_JUDGED, SIGNIFICANCE, levels, passes_control, to_log_odds
from leaderboards.significance.verdicts import Measured, Question, judge_claims
from suite.papers import list_claims
from suite.spec.claims import Claim, Effect, Logged, OfHeads, PaperClaims, Term
from suite.store.run_directory import RunDirectory

ROUNDED_SHARE = 0.01  # of the training: a reading that is later by no more is taken for on time
_LEAST_RATIO = 1e-10  # of a precision's eigenvalues, which are as good as singular below it
LOGGED_STEP = 1e-6  # to which gates and nonlocality are written down
FindLeaderboard = Callable[[str], Leaderboard | None]  # a suite's, at the scale that is judged


class _NoSuchLayerError(Exception):
    """A claim names a layer that the networks of this scale do not have."""


@dataclass(frozen=True, kw_only=True)
class JudgedClaim(Question):
    """A claim at one scale."""

    paper: PaperClaims
    claim: Claim
    scale: str

    @property
    def shown(self) -> Measured:
        """The effect that decides the claim."""
        return self.deciding[0]

    @property
    def unit(self) -> str:
        """The unit of the effect that is shown."""
        effect = self.claim.effects[list(self.effects).index(self.shown)]
        return "log odds" if effect.log_odds else self.claim.unit

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the claim, or a part of it, cannot be tested at this scale, or not yet."""
        if reason := self.claim.not_testable.get(self.scale):
            return (reason,)
        waits = self.p is None and self.unjudged is None
        parts = dict.fromkeys(effect.why_untestable for effect in self.effects)
        return tuple(filter(None, [*parts, f"Tested only if {self.after} holds." * waits]))

    @property
    def num_hold(self) -> int:
        """The number of effects that hold by themselves."""
        return sum(effect.passes for effect in self.effects)

    @property
    def num_opposite(self) -> int:
        """The number of effects that point the other way, significantly or not."""
        return sum(effect.points_the_other_way for effect in self.effects)

    @property
    def seeds_needed(self) -> int | None:
        """Further seeds for a power of 80 % in all effects; None where that is not known."""
        needed = [effect.seeds_needed for effect in self.effects]
        known = [count for count in needed if count is not None]
        return max(0, max(known) - self.shown.num_seeds) if len(known) == len(needed) else None

    def __str__(self) -> str:
        """``same direction at laptop scale``."""
        return self.verdict if self.scale == "paper" else f"{self.verdict} at {self.scale} scale"


def judge(
    find_leaderboard: FindLeaderboard, scale: str, papers: Sequence[PaperClaims] | None = None
) -> list[JudgedClaim]:
    """Judge all claims of papers, None: of all, at one scale; claims without a filled place are left out.

    ``find_leaderboard`` returns None for a suite without such a profile. SpecError if a claim names a place that no
    table has.
    """
    judged = []
    for paper in list_claims() if papers is None else papers:  # whose claims are one family but for the primary ones
        known = []
        for claim in paper.claims:
            with contextlib.suppress(_NoSuchLayerError):
                cells = [_find_cells(effect, find_leaderboard) for effect in claim.effects]
                if all(cells):
                    known.append(_ask(paper, claim, cells, find_leaderboard, scale))
        judged += judge_claims(known)
    return judged


def _level(claim: Claim, num_seeds: int, find_leaderboard: FindLeaderboard) -> float:
    """The level of a claim's test by the looks of its suites' frozen plans: of the first that has so many seeds, else
    of the last."""
    plans = [found.plan for suite in claim.suites if (found := find_leaderboard(suite)) and found.plan]
    of_plans = [levels(plan.looks)[min(bisect_left(plan.looks, num_seeds), len(plan.looks) - 1)] for plan in plans]
    return min(of_plans, default=SIGNIFICANCE)


def _ask(
    paper: PaperClaims, claim: Claim, cells: Sequence[Sequence[Cell]], find_leaderboard: FindLeaderboard, scale: str
) -> JudgedClaim:
    """Measure a claim's effects. It is settled where a run failed, or where the claim says that it is not testable."""
    failed = any(cell.status in ("failed", "void") for of_effect in cells for cell in of_effect)
    effects = [
        Measured(
            estimate=_estimate(effect, of_effect),
            paper=_size_in_paper(effect, of_effect),
            relation=claim.relation,
            margin=claim.margin,
            is_at_papers_scale=scale == "paper",
            why_untestable=_find_late(effect, of_effect) or _fails_control(effect, find_leaderboard),
        )
        for effect, of_effect in zip(claim.effects, cells, strict=True)
    ]
    return JudgedClaim(
        name=claim.name,
        effects=effects,
        settled="failed runs" if failed else "not testable here" if scale in claim.not_testable else None,
        is_primary=bool(claim.primary),
        after=claim.after,
        level=_level(claim, min(effect.num_seeds for effect in effects), find_leaderboard),
        paper=paper,
        claim=claim,
        scale=scale,
    )


def _fails_control(effect: Effect, find_leaderboard: FindLeaderboard) -> str:
    """Why an effect is not testable by its positive control; "" if that passes, or if there is none."""
    if effect.control is None:
        return ""
    cells = _find_cells(effect.control, find_leaderboard)
    if not cells:
        return "Its positive control is not in this profile."
    control = _estimate(effect.control, cells)
    if passes_control(control.vector, control.least_sd):
        return ""
    if len(control.values) < FEWEST_JUDGED:
        return "Its positive control has too few seeds."
    return f"Its positive control is not above zero ({control.mean:+.2g}, one-sided p {control.t_test().holds:.2g})."


def _find_late(effect: Effect, cells: Sequence[Cell]) -> str:
    """``Read after 33 % of the training, not 10 %.``, as runs are tested only so often; "" if all is read in time."""
    late = {}
    for term, cell in zip(effect.terms, cells, strict=True):
        run = next(iter(cell.provenance.runs.values()), None)  # it stands for all, as a profile's runs log alike
        if run is not None and cell.is_usable and term.logged and term.logged.at < 1:  # the end is read in time
            share = _logged_line(run, term.logged)[1]
            if share > term.logged.at + ROUNDED_SHARE:
                late[round(100 * term.logged.at)] = round(100 * share)
    claimed, read = (" and ".join(map(str, shares)) for shares in (sorted(late), sorted(late.values())))
    return f"Read after {read} % of the training, not {claimed} %." if late else ""


def _find_cells(effect: Effect, find_leaderboard: FindLeaderboard) -> list[Cell]:
    """The cells of an effect's terms; none where this scale leaves a place empty."""
    boards = [(find_leaderboard(term.suite), term.place) for term in effect.terms]
    known = [cell for of, place in boards if of is not None and (cell := of.cell(place)) is not None]
    return known if len(known) == len(boards) else []


def _estimate(effect: Effect, cells: Sequence[Cell]) -> Estimate:
    """The weighted sum by seed, of accuracies in points or in log odds."""
    weights = [term.weight for term in effect.terms]
    sources = [_source(term, cell, effect.log_odds) for term, cell in zip(effect.terms, cells, strict=True)]
    return derive(sources, lambda means: effect.constant + sum(w * m for w, m in zip(weights, means, strict=True)))


def _source(term: Term, cell: Cell, log_odds: bool) -> Estimate:
    """A term's number by seed. A cell that may not be shown counts as one without seeds."""
    if not cell.is_usable:
        return single({})
    estimate = derive([cell.estimate], lambda means: in_points(cell.metric) * means[0])
    if term.logged is not None:
        assert cell.provenance.experiment is not None, f"{term.place} is derived, and so has logged nothing"
        read = {seed: read_logged(run, term.logged) for seed, run in cell.provenance.runs.items()}
        least_sd = estimate.least_sd if is_accuracy(term.logged.metric) else LOGGED_STEP / math.sqrt(12)
        estimate = single({seed: value for seed, value in read.items() if value is not None}, least_sd)
    if not log_odds:
        return estimate
    values = {seed: to_log_odds(value) for seed, value in estimate.values.items() if 0 < value < 100}
    mean = estimate.mean or 0.0
    return single(values, 100 * estimate.least_sd / (mean * (100 - mean)) if values else 0.0)


def _size_in_paper(effect: Effect, cells: Iterable[Cell]) -> float | None:
    """The effect in the paper's numbers; None where it prints only the direction."""
    if effect.paper is not None:
        return effect.paper
    printed = [in_points(cell.metric) * cell.paper for cell in cells if cell.paper is not None]
    if len(printed) < len(effect.terms) or any(term.logged for term in effect.terms):
        return None
    sizes = map(to_log_odds, printed) if effect.log_odds else printed
    return effect.constant + sum(term.weight * size for term, size in zip(effect.terms, sizes, strict=True))


def read_logged(run: RunDirectory, logged: Logged) -> float | None:
    """The number in the first line of a run's log at or after a share of its training; None if it has logged none.
    Raises _NoSuchLayerError if the network has fewer layers than the claim names."""
    if run.read_result() is None:
        return None
    if logged.of_heads == "mass one step away":
        return _read_mass(run, logged)
    line, _ = _logged_line(run, logged)
    if not line:
        return None
    value = line[logged.metric]
    if logged.layer is None:
        return float(value)
    if logged.layer > len(value):
        raise _NoSuchLayerError
    heads = value[logged.layer - 1]
    return _of_heads(heads, logged.of_heads) if heads else None


def _read_mass(run: RunDirectory, logged: Logged) -> float | None:
    from leaderboards.boards.recorded import read_recorded  # imports numpy

    recorded = read_recorded(run, (logged.metric,))
    assert logged.layer is not None, "attention is recorded by layer"
    if recorded is None:
        return None
    if logged.layer > len(recorded.layers):
        raise _NoSuchLayerError
    return recorded.mass_one_step_away("after" if logged.at else "before", logged.layer - 1)


def _of_heads(heads: list[Any], what: OfHeads) -> float | None:
    """One number of a layer's heads, as ``Logged`` says; None of the distance between a head and no other."""
    if what == "mean":
        return statistics.fmean(heads)
    if what == "log aspect":
        return statistics.fmean(map(_log_aspect, heads))
    if len(heads) < 2:
        return None
    others = (heads[:number] + heads[number + 1 :] for number in range(len(heads)))
    return statistics.fmean(min(math.dist(head, of) for of in rest) for head, rest in zip(heads, others, strict=True))


def _log_aspect(precision: Sequence[float]) -> float:
    """Half ln of the ratio of a precision's eigenvalues: the axes are to each other as the roots of these."""
    mean, difference, beside = (precision[0] + precision[2]) / 2, (precision[0] - precision[2]) / 2, precision[1]
    radius = math.hypot(difference, beside)
    return math.log((mean + radius) / max(mean - radius, (mean + radius) * _LEAST_RATIO)) / 2


def _logged_line(run: RunDirectory, logged: Logged) -> tuple[dict[str, Any], float]:
    """The line that is read, and its share of the training; an empty line if nothing is logged."""
    lines = list({line["step"]: line for line in run.read_metrics() if line.get(logged.metric) is not None}.values())
    if not lines:
        return {}, 0.0
    last = lines[-1]["step"]
    line = next(line for line in lines if line["step"] >= logged.at * last)
    return line, line["step"] / last if last else 0.0
