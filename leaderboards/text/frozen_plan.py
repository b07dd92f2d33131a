"""Leaderboard with a frozen plan -> whether it is as frozen, or what differs, in plain text."""

from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.collect import SeedRuns
from suite.papers import list_claims
from suite.store.attempts import read_attempts
from suite.store.frozen_plan import FrozenPlan
from suite.store.run_directory import RunDirectory


def describe_plan(leaderboard: Leaderboard) -> list[str]:
    """One sentence on the plan, one for each difference, one for runs without a result; nothing without a plan."""
    plan = leaderboard.plan
    if plan is None:
        return []
    shown = [(one, entry) for entry in leaderboard.profile.entries for one in entry.candidates]
    ours = [one for one, entry in shown if not entry.beside or one.configuration in plan.configurations]
    runs = {one.configuration: leaderboard.collection.runs[one.configuration_id] for one in ours}
    parents = {parent.configuration for one in ours for parent in one.parents}
    elsewhere = [
        (of, seed, of.plans[seed]) for of in runs.values() for seed in of.plans if of.plans[seed] != plan.sha256
    ]
    frozen_at = datetime.fromisoformat(plan.frozen_at)
    num_shared = sum(digest != "" and _began(of.directories[seed]) >= frozen_at for of, seed, digest in elsewhere)
    missing = _find_missing(plan, runs)
    differences = list(_differences(plan, runs, parents))
    if others := len(elsewhere) - num_shared:
        differences.append(
            f"{others} runs were not trained under this plan: they began before it, or it was changed since"
        )
    until = "" if plan.until is None else f", until the headline is known to {plan.until:g} points"
    looks = f", judged at {' and '.join(map(str, plan.looks))} seeds"
    stated = (
        f"{'not ' * bool(differences)}as frozen at {plan.frozen_at} (SHA-256 {plan.sha256[:16]})"
        f"{', incomplete' * bool(missing)}: {len(plan.configurations)} configurations, {len(plan.claims)} claims, "
        f"seeds {min(plan.seeds)} to {max(plan.seeds)}{until or looks}"
    )
    if num_shared:
        stated += f"; {num_shared} of the runs began after it, under the plan of another suite that has them, too"
    return [stated, *differences, *missing]


def _began(run: RunDirectory) -> datetime:
    """When the first attempt at a run began; the beginning of time where none is recorded."""
    return datetime.fromtimestamp(next((attempt.started_at for attempt in read_attempts(run)), 0.0), UTC)


def _find_missing(plan: FrozenPlan, runs: Mapping[str, SeedRuns]) -> list[str]:
    """Count the runs without a result at the first look that lacks some; a look after a complete one counts once a run
    of it has ended. With ``until``, the plan has the first look alone."""
    names, before = [name for name in runs if name in plan.configurations], 0
    for look in plan.looks:
        planned = [(name, seed) for name in names for seed in plan.seeds[:look]]
        missing = [f"{name} seed {seed}" for name, seed in planned if seed not in runs[name].values]
        has_begun = not before or any(seed in runs[name].values for name in names for seed in plan.seeds[before:look])
        if missing and has_begun:
            count = f"{len(missing)} of {len(planned)} for the look at {look} seeds"
            return [f"runs without a result: {count}, such as {missing[0]}; until they end, no verdict is the plan's"]
        before = look
    return []


def _differences(plan: FrozenPlan, runs: Mapping[str, SeedRuns], parents: Set[str]) -> Iterator[str]:
    yield from _compare("configurations", set(plan.configurations) - parents, set(runs) - parents)
    seeds = {seed for of in runs.values() for seed in of.values}
    if plan.until is None and (others := sorted(seeds - set(plan.seeds))):
        yield f"seeds there and not planned: {', '.join(map(str, others))}"
    claims = {one.name: one for paper in list_claims() for one in paper.claims if plan.suite in one.suites}
    frozen = {claim.name: claim for claim in plan.claims}
    yield from _compare("claims", set(frozen), set(claims))
    if changed := sorted(name for name in set(claims) & set(frozen) if claims[name] != frozen[name]):
        yield f"claims that were changed since: {', '.join(changed)}"


def _compare(what: str, planned: set[str], found: set[str]) -> Iterator[str]:
    for words, names in (("planned and not there", planned - found), ("there and not planned", found - planned)):
        if names:
            yield f"{what} {words}: {', '.join(map(str, sorted(names)))}"
