"""Leaderboard with a frozen plan -> whether it is as frozen, or what differs, in plain text."""

from collections.abc import Iterator
from datetime import UTC, datetime

from leaderboards.boards.board import Leaderboard
from suite.papers import list_claims
from suite.store.attempts import read_attempts
from suite.store.frozen_plan import FrozenPlan
from suite.store.run_directory import RunDirectory


def describe_plan(leaderboard: Leaderboard) -> list[str]:
    """One sentence on the plan, then one for each difference; nothing where no plan was frozen."""
    plan = leaderboard.plan
    if plan is None:
        return []
    elsewhere = _trained_elsewhere(leaderboard, plan)
    shared = [run for run, digest in elsewhere if digest and _began(run) >= datetime.fromisoformat(plan.frozen_at)]
    differences = list(_differences(leaderboard, plan))
    if others := len(elsewhere) - len(shared):
        differences.append(
            f"{others} runs were not trained under this plan: they began before it, or it was changed since"
        )
    until = "" if plan.until is None else f", until the headline is known to {plan.until:g} points"
    looks = f", judged at {' and '.join(map(str, plan.looks))} seeds"
    stated = (
        f"{'not ' * bool(differences)}as frozen at {plan.frozen_at} (SHA-256 {plan.sha256[:16]}): "
        f"{len(plan.configurations)} configurations, {len(plan.claims)} claims, seeds {min(plan.seeds)} to "
        f"{max(plan.seeds)}{until or looks}"
    )
    if shared:
        stated += f"; {len(shared)} of the runs began after it, under the plan of another suite that has them, too"
    return [stated, *differences]


def _trained_elsewhere(leaderboard: Leaderboard, plan: FrozenPlan) -> list[tuple[RunDirectory, str]]:
    """The runs that were not trained under the plan, each with the digest of its own plan, or ""."""
    ours = {
        one.configuration_id for entry in leaderboard.profile.entries if not entry.beside for one in entry.candidates
    }
    found = [leaderboard.collection.runs[name] for name in sorted(ours)]
    return [(of.directories[n], digest) for of in found for n, digest in of.plans.items() if digest != plan.sha256]


def _began(run: RunDirectory) -> datetime:
    """When the first attempt at a run began; the beginning of time where none is recorded."""
    return datetime.fromtimestamp(next((attempt.started_at for attempt in read_attempts(run)), 0.0), UTC)


def _differences(leaderboard: Leaderboard, plan: FrozenPlan) -> Iterator[str]:
    ours = [one for entry in leaderboard.profile.entries if not entry.beside for one in entry.candidates]
    runs = {one.configuration: leaderboard.collection.runs[one.configuration_id] for one in ours}
    parents = {parent.configuration for one in ours for parent in one.parents}
    yield from _compare("configurations", set(plan.configurations) - parents, set(runs) - parents)
    seeds = {seed for of in runs.values() for seed in of.values}
    if plan.until is None:
        yield from _compare("seeds", set(plan.seeds), seeds)
    claims = {one.name: one for paper in list_claims() for one in paper.claims if plan.suite in one.suites}
    frozen = {claim.name: claim for claim in plan.claims}
    yield from _compare("claims", set(frozen), set(claims))
    if changed := sorted(name for name in set(claims) & set(frozen) if claims[name] != frozen[name]):
        yield f"claims that were changed since: {', '.join(changed)}"


def _compare(what: str, planned: set[str] | set[int], found: set[str] | set[int]) -> Iterator[str]:
    for words, names in (("planned and not there", planned - found), ("there and not planned", found - planned)):
        if names:
            yield f"{what} {words}: {', '.join(map(str, sorted(names)))}"
