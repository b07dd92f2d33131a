"""Boards -> the verdict on every claim of the papers, at one scale.

A claim's numbers come from the cells that it names, in any suite, or from the logs of the runs behind them. It is
judged at a scale whose profile fills all of its places.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import in_points, is_accuracy
from leaderboards.significance.estimates import Estimate, Sample, derive, single
from leaderboards.significance.verdicts import ClaimVerdict, Measured, judge_claims, seeds_to_hold, weakest
from suite.papers import list_claims
from suite.spec.claims import Claim, Effect, Logged, PaperClaims, Term
from suite.store.run_directory import RunDirectory

ROUNDED_SHARE = 0.01  # of the training: a reading that is later by no more is taken for on time
LOGGED_STEP = 1e-6  # to which gates and nonlocality are written down
FindLeaderboard = Callable[[str], Leaderboard | None]  # a suite's, at the scale that is judged


class _NoSuchLayerError(Exception):
    """A claim names a layer that the networks of this scale do not have."""


@dataclass(frozen=True)
class LateReading:
    """A number that was logged at a later share of the training than the claim names."""

    claimed_at: float
    read_at: float


@dataclass(frozen=True)
class JudgedClaim:
    """A claim at one scale."""

    paper: PaperClaims
    claim: Claim
    scale: str
    verdict: ClaimVerdict
    p_value: float | None  # adjusted over the paper's claims
    effects: tuple[Measured, ...]
    suites: tuple[str, ...]
    late: tuple[LateReading, ...] = ()

    @property
    def shown(self) -> Measured:
        """The effect that decides the claim: the one whose data speak least for it."""
        return weakest(self.effects)

    @property
    def num_seeds(self) -> tuple[int, ...]:
        """The number of seeds in each group of the deciding effect."""
        return tuple(len(sample.values) for sample in self.shown.estimate.samples)

    @property
    def seeds_needed(self) -> int | None:
        """Further seeds of each group for a power of 80 % in all effects; None where that is not known."""
        needed = [seeds_to_hold(effect) for effect in self.effects]
        known = [count for count in needed if count is not None]
        return max(0, max(known) - min(self.num_seeds)) if known and len(known) == len(needed) else None

    def __str__(self) -> str:
        """``reproduced at laptop scale``."""
        return self.verdict if self.scale == "paper" else f"{self.verdict} at {self.scale} scale"


def judge(
    find_leaderboard: FindLeaderboard, scale: str, papers: Sequence[PaperClaims] | None = None
) -> list[JudgedClaim]:
    """Judge all claims of papers at one scale; claims without a filled place are left out.

    Args:
        find_leaderboard: returns the leaderboard of a suite at this scale; None if the suite has no such profile.
        scale: the profile's name.
        papers: the papers; None: all.

    Raises:
        SpecError: A claim names a place that no table has.
    """
    return [
        judged
        for paper in (list_claims() if papers is None else papers)
        for judged in _judge_paper(paper, find_leaderboard, scale)
    ]


def _judge_paper(paper: PaperClaims, find_leaderboard: FindLeaderboard, scale: str) -> Iterator[JudgedClaim]:
    """Judge all claims of one paper: one family for Holm's method, with those that this scale leaves out."""
    known = []
    for claim in paper.claims:
        with contextlib.suppress(_NoSuchLayerError):
            if cells := _find_cells(claim, find_leaderboard):
                known.append((claim, cells, _measure(claim, cells)))
    verdicts = judge_claims([effects for _, _, effects in known], len(paper.claims))
    for (claim, cells, effects), (verdict, p) in zip(known, verdicts, strict=True):
        suites = tuple(dict.fromkeys(term.suite for effect in claim.effects for term in effect.terms))
        if any(cell.status in ("failed", "void") for of_effect in cells for cell in of_effect):
            verdict, p = "failed runs", None
        yield JudgedClaim(paper, claim, scale, verdict, p, effects, suites, _late_readings(claim, cells))


def _late_readings(claim: Claim, cells: Sequence[Sequence[Cell]]) -> tuple[LateReading, ...]:
    """The readings that are late by more than a rounded step, the earliest first. One log of a configuration stands for
    all, as the runs of a profile log alike."""
    asked: dict[tuple[Path, str, float], tuple[RunDirectory, Logged]] = {}
    for effect, of_effect in zip(claim.effects, cells, strict=True):
        for term, cell in zip(effect.terms, of_effect, strict=True):
            if cell.is_usable and term.logged and term.logged.at < 1:  # the end is always read in time
                for run in cell.provenance.runs.values():
                    asked.setdefault((run.path.parent, term.logged.metric, term.logged.at), (run, term.logged))
    found = set()
    for run, logged in asked.values():
        if (share := _logged_line(run, logged)[1]) > logged.at + ROUNDED_SHARE:
            found.add((logged.at, share))
    return tuple(LateReading(*both) for both in sorted(found))


def _find_cells(claim: Claim, find_leaderboard: FindLeaderboard) -> list[list[Cell]]:
    """The cells of each effect's terms; none where this scale leaves a place empty."""
    found = []
    for effect in claim.effects:
        leaderboard = [(find_leaderboard(term.suite), term.place) for term in effect.terms]
        known = [cell for of, place in leaderboard if of is not None and (cell := of.cell(place)) is not None]
        if len(known) < len(effect.terms):
            return []
        found.append(known)
    return found


def _measure(claim: Claim, cells: Sequence[Sequence[Cell]]) -> tuple[Measured, ...]:
    margin = claim.margin if claim.relation == "equal" else None
    return tuple(
        Measured(_estimate(effect, of_effect), _size_in_paper(effect, of_effect), margin)
        for effect, of_effect in zip(claim.effects, cells, strict=True)
    )


def _estimate(effect: Effect, cells: Sequence[Cell]) -> Estimate:
    """The weighted sum, accuracies in points. A cell that may not be shown counts as one without seeds."""
    weights = [
        term.weight * (1.0 if term.logged else in_points(cell.metric))
        for term, cell in zip(effect.terms, cells, strict=True)
    ]
    sources = [_source(term, cell) for term, cell in zip(effect.terms, cells, strict=True)]
    return derive(sources, lambda means: effect.constant + sum(w * m for w, m in zip(weights, means, strict=True)))


def _source(term: Term, cell: Cell) -> Estimate:
    if not cell.is_usable:
        return single(Sample({}))
    if term.logged is None:
        return cell.estimate
    assert cell.provenance.experiment is not None, f"{term.place} is derived, and so has logged nothing"
    values = {seed: read_logged(run, term.logged) for seed, run in cell.provenance.runs.items()}
    sample = cell.estimate.samples[0]
    least_sd = sample.least_sd if is_accuracy(term.logged.metric) else LOGGED_STEP / math.sqrt(12)
    return single(
        Sample({seed: value for seed, value in values.items() if value is not None}, sample.networks, least_sd)
    )


def _size_in_paper(effect: Effect, cells: Iterable[Cell]) -> float | None:
    """The effect in the paper's numbers; None where it prints only the direction."""
    if effect.paper is not None:
        return effect.paper
    total = effect.constant
    for term, cell in zip(effect.terms, cells, strict=True):
        if cell.paper is None or term.logged is not None:
            return None
        total += term.weight * in_points(cell.metric) * cell.paper
    return total


def read_logged(run: RunDirectory, logged: Logged) -> float | None:
    """The number in the first line of a run's log at or after a share of its training; None if it has logged none.
    Raises _NoSuchLayerError if the network has fewer layers than the claim names."""
    if run.read_result() is None:
        return None
    line, _ = _logged_line(run, logged)
    if not line:
        return None
    value = line[logged.metric]
    if logged.layer is None:
        return float(value)
    if logged.layer > len(value):
        raise _NoSuchLayerError
    heads = value[logged.layer - 1]
    return sum(heads) / len(heads) if heads else None


def _logged_line(run: RunDirectory, logged: Logged) -> tuple[dict[str, Any], float]:
    """The line that is read, and its share of the training; an empty line if nothing is logged."""
    lines = list({line["step"]: line for line in run.read_metrics() if line.get(logged.metric) is not None}.values())
    if not lines:
        return {}, 0.0
    last = lines[-1]["step"]
    line = next(line for line in lines if line["step"] >= logged.at * last)
    return line, line["step"] / last if last else 0.0
