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
    """One sentence on the plan, then one for each difference; nothing where no plan was frozen."""
    plan = leaderboard.plan
    if plan is None:
        return []
    ours = [one for entry in leaderboard.profile.entries if not entry.beside for one in entry.candidates]
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
    so_far = " so far" if missing and not differences else ""
    stated = (
        f"{'not ' * bool(differences)}as frozen{so_far} at {plan.frozen_at} (SHA-256 {plan.sha256[:16]}): "
        f"{len(plan.configurations)} configurations, {len(plan.claims)} claims, seeds {min(plan.seeds)} to "
        f"{max(plan.seeds)}{until or looks}"
    )
    if num_shared:
        stated += f"; {num_shared} of the runs began after it, under the plan of another suite that has them, too"
    return [stated, *differences, *missing]


def _began(run: RunDirectory) -> datetime:
    """When the first attempt at a run began; the beginning of time where none is recorded."""
    return datetime.fromtimestamp(next((attempt.started_at for attempt in read_attempts(run)), 0.0), UTC)


def _find_missing(plan: FrozenPlan, runs: Mapping[str, SeedRuns]) -> list[str]:
    """Count the plan's runs that are not there, of the first look that has as many seeds as there are."""
    found = max((len(of.values) for of in runs.values()), default=0)
    look = next((look for look in plan.looks if look >= found), len(plan.seeds))
    planned = [(name, seed) for name in runs if name in plan.configurations for seed in plan.seeds[:look]]
    missing = [f"{name} seed {seed}" for name, seed in planned if seed not in runs[name].values]
    at_look = f" of the look at {look} seeds" if look < len(plan.seeds) else ""
    count = f"{len(missing)} of the {len(planned)}{at_look}"
    return [f"runs that are not there: {count}, such as {missing[0]}"] if missing else []


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


def _compare(what: str, planned: set[str] | set[int], found: set[str] | set[int]) -> Iterator[str]:
    for words, names in (("planned and not there", planned - found), ("there and not planned", found - planned)):
        if names:
            yield f"{what} {words}: {', '.join(map(str, sorted(names)))}"
