"""Recomputed cells -> the papers' claims, judged by the rules of docs/boards.md for scales that are not the papers'."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from recomputed_numbers import ACCURACIES, Cell, Key, Number, Run, combine, number, weighted
from scipy import stats

from suite.spec.claims import Claim, Effect, Logged, PaperClaims, Term

Cells = Mapping[str, Mapping[str, Mapping[Key, Cell]]]  # by suite and table; "" is its first table
_LATE = 0.01  # share of the training by which a reading may be late


class _NoSuchLayerError(Exception):
    """A claim names a layer that the networks of a scale do not have."""


class _Measured(NamedTuple):
    """One effect of a claim: ours and the paper's, the one-sided p-values of what is claimed and of its opposite."""

    ours: Number
    paper: float
    unmatched: int  # runs without a partner of their seed
    p_holds: float
    p_opposite: float
    is_opposite: bool
    is_untestable: bool  # as it is read late, or as its positive control fails
    seeds_needed: int | None


def _log_odds(percent: float) -> float:
    return math.log(percent / (100 - percent))


def _read_line(run: Run, logged: Logged) -> tuple[float | None, bool]:
    """The first logged value at or after a share of the training, None without any, and whether it is late."""
    if logged.of_heads == "mass one step away":
        percentages = json.loads(run["maps.safetensors"])
        layers = {int(name.split()[1]) for name in percentages}
        if logged.layer not in layers:
            raise _NoSuchLayerError
        return percentages[f"{'after' if logged.at else 'before'} {logged.layer}"], False
    lines = [json.loads(line) for line in run["metrics.jsonl"].splitlines()]
    logs = {line["step"]: line[logged.metric] for line in lines if line.get(logged.metric) is not None}
    if not logs:
        return None, False
    step = min(step for step in logs if step >= logged.at * max(logs))
    is_late = step > (logged.at + _LATE) * max(logs)
    if logged.layer is None:
        return float(logs[step]), is_late
    if logged.layer > len(logs[step]):
        raise _NoSuchLayerError
    heads = logs[step][logged.layer - 1]
    return _OF_HEADS[logged.of_heads](heads) if heads else None, is_late


def _nearest(centers: list[tuple[float, float]]) -> float:
    """The mean distance from a center to the nearest other one."""
    return float(np.mean([min(math.dist(one, two) for two in centers if two is not one) for one in centers]))


def _log_aspect(precisions: list[tuple[float, float, float]]) -> float:
    """The mean ln(long axis / short axis) of Gaussians, by the closed form of a 2 x 2 matrix's eigenvalues."""
    found = []
    for a, b, c in precisions:
        middle, distance = (a + c) / 2, math.hypot((a - c) / 2, b)
        found.append(math.log((middle + distance) / (middle - distance)) / 2)
    return float(np.mean(found))


_OF_HEADS: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "distance to nearest": _nearest,
    "log aspect": _log_aspect,
}


def _read_term(term: Term, cell: Cell, log_odds: bool) -> tuple[Number, bool]:
    """A term's number by seed, in points or log odds, and whether it is read late."""
    found, is_late = combine([cell.number], weighted([cell.per_point])), False
    if term.logged:
        read = {seed: _read_line(run, term.logged) for seed, run in cell.runs.items()}
        least = found.least_sd if term.logged.metric in ACCURACIES else 1e-6 / math.sqrt(12)
        found = number({seed: value for seed, (value, _) in read.items() if value is not None}, least)
        is_late = any(late for _, late in read.values())
    if log_odds and len(found.values):
        slope = 100 / (found.mean * (100 - found.mean))
        found = number(found.values.map(_log_odds).to_dict(), slope * found.least_sd)
    return found, is_late


def _add_up(effect: Effect, cells: Cells) -> tuple[Number, float, int, bool] | None:
    """An effect by seed, in the paper's numbers, its unmatched runs, and whether a part is read late; None where the
    scale leaves one of its places empty."""
    weights: dict[tuple[str, Any, Any], float] = {}  # of a number that occurs twice the sum
    for term in effect.terms:
        key = (term.suite, term.place, term.logged)
        weights[key] = weights.get(key, 0.0) + term.weight
    read, paper = [], effect.constant
    for (suite, place, logged), weight in weights.items():
        cell = cells.get(suite, {}).get(place.table, {}).get((place.row, place.column))
        if cell is None:
            return None
        term = Term(weight=weight, suite=suite, place=place, logged=logged)
        read.append(_read_term(term, cell, effect.log_odds))
        size = math.nan if logged else cell.per_point * cell.paper
        paper += weight * (_log_odds(size) if effect.log_odds else size)
    ours = combine([found for found, _ in read], weighted(list(weights.values()), effect.constant))
    unmatched = sum(len(found.values) - len(ours.values) for found, _ in read)
    return ours, paper if effect.paper is None else effect.paper, unmatched, any(late for _, late in read)


def _find_seeds_needed(mean: float, sd: float, margin: float | None) -> int | None:
    """The seeds that find a mean, or show that it is within a margin, four times of five, by Student's t at 5 %."""
    n = np.arange(2, 1025)
    error, reach = sd / np.sqrt(n), stats.t.isf(0.025, n - 1)
    if margin is None:
        power = stats.nct.sf(reach, n - 1, abs(mean) / error)
    else:
        power = sum(stats.t.cdf((margin + side * mean) / error - reach, n - 1) for side in (1, -1)) - 1
    enough = n[np.nan_to_num(power) >= 0.8]
    return int(enough[0]) if len(enough) else None


def _measure(claim: Claim, effect: Effect, cells: Cells) -> _Measured | None:
    """Measure one effect of a claim; None where the scale leaves one of its places empty."""
    if (added := _add_up(effect, cells)) is None:
        return None
    ours, paper, unmatched, is_untestable = added
    if effect.control:
        control = _add_up(effect.control, cells)
        is_untestable |= control is None or len(control[0].values) < 5 or control[0].test()[0] >= 0.005
    mean, low, high = ours.mean, ours.test(-claim.margin), ours.test(claim.margin)
    if claim.relation == "equal":
        sides, is_opposite = (max(low[0], high[1]), min(low[1], high[0])), abs(mean) > claim.margin
    elif claim.relation == "no worse":
        sides, is_opposite = low, mean < -claim.margin
    else:
        sides, is_opposite = ours.test(), mean < 0
    needed = None
    if ours.sd and not is_opposite:
        shown = mean + claim.margin * (claim.relation == "no worse")
        needed = _find_seeds_needed(shown, ours.sd, claim.margin if claim.relation == "equal" else None)
    return _Measured(ours, paper, unmatched, *sides, is_opposite, is_untestable, needed)


def _test(effects: Sequence[_Measured]) -> tuple[float, float]:
    """p-values of all effects holding, and of one of them being the opposite, by the number that can be tested."""
    testable = [effect for effect in effects if not effect.is_untestable]
    holds = max(effect.p_holds for effect in testable) if len(testable) == len(effects) else 1.0
    return holds, min(1.0, len(testable) * min((effect.p_opposite for effect in testable), default=1.0))


def _find_deciding(effects: Sequence[_Measured]) -> tuple[_Measured, float]:
    """The effect that is shown, and its two-sided p: the weakest of a claim that rather holds, or the strongest
    opposite."""
    testable = [effect for effect in effects if not effect.is_untestable]
    holds, opposite = _test(effects)
    if testable and opposite < holds:
        shown = min(testable, key=lambda effect: effect.p_opposite)
        return shown, min(1.0, 2 * shown.p_opposite)
    shown = max(testable or effects, key=lambda effect: (effect.p_holds, -np.nan_to_num(effect.ours.mean)))
    return shown, min(1.0, 2 * shown.p_holds)


def _settle(claim: Claim, scale: str, effects: Sequence[_Measured]) -> str:
    """The verdict of a claim that is not tested; "" of one that is."""
    if scale in claim.not_testable:
        return "not testable here"
    if all(math.isnan(effect.ours.mean) for effect in effects):
        return "too few seeds" if any(effect.unmatched for effect in effects) else "no runs"
    if all(effect.is_untestable for effect in effects):
        return "not testable here"
    return "too few seeds" if min(len(effect.ours.values) for effect in effects) < 5 else ""


def _judge(effects: Sequence[_Measured], adjusted: float) -> str:
    holds, opposite = _test(effects)
    if adjusted < 0.05 and opposite < holds:
        return "opposite direction"
    if any(effect.is_untestable for effect in effects):
        return "not testable here"
    return "same direction" if adjusted < 0.05 else "unresolved"


def _level(claim: Claim, effects: Sequence[_Measured], looks: Mapping[str, Sequence[int]]) -> float:
    """The level of the looks at so many seeds or more, by the plans of the claim's suites; else 0.05."""
    num_seeds = min(len(effect.ours.values) for effect in effects)
    plans = [looks[suite] for suite in claim.suites if len(looks.get(suite, ())) == 2]
    of_looks = [(plan, (0.01, 0.045) if list(plan) == [5, 8] else (0.0294, 0.0294)) for plan in plans]
    levels = [level for plan, of in of_looks for look, level in zip(plan, of, strict=True) if look >= num_seeds]
    return min([*levels, 0.05])


def judge_paper(
    paper: PaperClaims, scale: str, cells: Cells, looks: Mapping[str, Sequence[int]]
) -> Iterator[dict[str, Any]]:
    """Judge the claims of one paper whose places a scale fills: a line of ``claims.csv`` each.

    Args:
        paper, scale, cells: its claims, and the cells of each suite at this scale.
        looks: the seeds at each look of a suite's frozen plan.
    """
    known: dict[str, tuple[Claim, list[_Measured]]] = {}
    for claim in paper.claims:
        try:
            measured = [_measure(claim, effect, cells) for effect in claim.effects]
        except _NoSuchLayerError:
            continue
        if None not in measured:
            known[claim.name] = claim, [effect for effect in measured if effect]
    settled = {name: _settle(claim, scale, effects) for name, (claim, effects) in known.items()}
    tested = {name: of for name, of in known.items() if not settled[name]}
    p = pd.Series({n: min(1.0, 2 * min(_test(of[1])) * 0.05 / _level(*of, looks)) for n, of in tested.items()})
    family = [name for name in p.index if not known[name][0].primary]
    adjusted = p.copy()
    adjusted[family] = stats.false_discovery_control(p[family]) if family else p[family]
    passed = set()
    for name, (claim, effects) in known.items():
        line = _describe(claim, effects, scale) | {"p": math.nan, "p_adjusted": math.nan, "num_tests": math.nan}
        verdict = settled[name]
        if not verdict and claim.after and claim.after not in passed:
            verdict = "unresolved"
        elif not verdict:
            verdict = _judge(effects, adjusted[name])
            num_tests = 1 if claim.primary else len(family)
            line |= {"p": _find_deciding(effects)[1], "p_adjusted": adjusted[name], "num_tests": num_tests}
        passed |= {name} if verdict == "same direction" else set()
        yield line | {"paper": paper.name, "verdict": verdict}


def _describe(claim: Claim, effects: Sequence[_Measured], scale: str) -> dict[str, Any]:
    """The numbers of a line of ``claims.csv``, as they are without a test."""
    shown, _ = _find_deciding(effects)
    low, high = shown.ours.interval
    needed = [effect.seeds_needed for effect in effects if effect.seeds_needed]
    n = len(shown.ours.values)
    return {
        "claim": claim.name,
        "scale": scale,
        "effect": shown.ours.mean,
        "low": low,
        "high": high,
        "n": n,
        "unmatched": shown.unmatched,
        "effects": len(effects),
        "effects_that_hold": sum(2 * effect.p_holds < 0.05 and not effect.is_untestable for effect in effects),
        "effects_the_other_way": sum(effect.is_opposite for effect in effects),
        "seeds_needed": max(0, max(needed) - n) if len(needed) == len(effects) else math.nan,
        "paper_effect": shown.paper,
    }
