"""A run store -> every suite at every scale that has runs, and the papers' claims judged on them.

What ``build`` writes and a live server shows; nothing is written here.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboards.boards.board import Leaderboard, enter_custom_models, make_leaderboard
from leaderboards.boards.budget import Cost, estimate_cost
from leaderboards.boards.cells import Cell
from leaderboards.entries import with_entries
from leaderboards.judged_claims import JudgedClaim, judge
from suite.base.errors import RecordError, SuiteError
from suite.papers import get_suite, list_suites
from suite.spec.suite import Suite
from suite.store.run_store import list_configurations


@dataclass(frozen=True)
class IndexLine:
    """A suite at one scale. Without runs, ``profile_name`` is "" and ``leaderboard`` has the paper's numbers alone; a
    suite that cannot be built has an ``error``."""

    suite: Suite
    profile_name: str = ""
    leaderboard: Leaderboard | None = None
    cost: Cost | None = None
    planned: Cost | None = None  # of one without runs
    error: str = ""

    @property
    def headline(self) -> Cell | None:
        return None if self.leaderboard is None else self.leaderboard.headline

    @property
    def ours(self) -> Cell | None:
        """The headline where there are runs."""
        return self.headline if self.cost else None


def survey(
    store: Path, profile: str | None = None, seeds: Sequence[int] | None = None, also: tuple[str, str] | None = None
) -> Iterator[IndexLine]:
    """Read every suite at every scale that has runs; of suites without any the paper's numbers.

    Args:
        store: the run store.
        profile: the only scale to look at; None: all.
        seeds: seeds planned for each cell; None: those of the fullest cell.
        also: another suite and its scale, such as one of the user's own or on other images.
    """
    extra = {also[0]: also[1]} if also else {}
    for name in dict.fromkeys([*list_suites(), *extra]):
        suite = get_suite(name)
        if profile:
            profiles = [profile] if suite.has_profile(profile) else []
        else:
            profiles = list(dict.fromkeys([*suite.profiles, "smoke", *filter(None, [extra.get(name)])]))
        for shown in [one for one in profiles if has_runs(suite, one, store)] or [""]:
            yield read_line(suite, shown, store, seeds)


def has_runs(suite: Suite, profile: str, store: Path) -> bool:
    """Whether at least one experiment of an entry has a folder in the store."""
    configurations = list_configurations(store)
    if not configurations:
        return False
    with contextlib.suppress(RecordError):  # an unreadable record is an error where the suite is built
        suite = enter_custom_models(suite, profile, store)
    candidates = (candidate for entry in suite.profile(profile).entries for candidate in entry.candidates)
    return any(candidate.configuration in configurations for candidate in candidates)


def read_line(suite: Suite, profile: str, store: Path, seeds: Sequence[int] | None = None) -> IndexLine:
    """Read one suite at one scale; an error is kept in its line, so that the index has the others.

    Args:
        suite: the suite as it is published.
        profile: the name of the scale; "": the suite has no runs, and only the paper's numbers are read.
        store: the run store.
        seeds: seeds planned for each cell; None: those of the fullest cell.
    """
    try:
        shown = profile or ("paper" if "paper" in suite.profiles else next(iter(suite.profiles)))
        leaderboard = with_entries(make_leaderboard(suite, shown, store, seeds))
        cost = estimate_cost(leaderboard.profile, leaderboard.collection)
        if not profile:
            return IndexLine(leaderboard.suite, leaderboard=leaderboard, planned=cost)
        return IndexLine(leaderboard.suite, profile, leaderboard, cost)
    except SuiteError as error:
        return IndexLine(suite, profile, error=str(error))


def find_claims(leaderboard: Leaderboard, store: Path) -> list[JudgedClaim]:
    """The claims about one suite, judged at its scale together with all of their paper's; the other suites that they
    name are read from the store."""
    name = leaderboard.suite.name
    claims = _judge(leaderboard.profile_name, {name: leaderboard}, store)
    return [judged for judged in claims if name in judged.claim.suites]


def judge_all(lines: Sequence[IndexLine], store: Path) -> list[JudgedClaim]:
    """Judge the papers' claims at every scale that has runs."""
    claims = []
    for scale in dict.fromkeys(line.profile_name for line in lines if line.profile_name and line.leaderboard):
        found = {line.suite.name: line.leaderboard for line in lines if line.profile_name == scale}
        claims += _judge(scale, found, store)
    return claims


def _judge(scale: str, known: dict[str, Leaderboard | None], store: Path) -> list[JudgedClaim]:
    """Judge all claims at one scale; none at ``smoke``, whose numbers mean nothing."""
    if scale.partition("-")[0] == "smoke":
        return []

    def find(name: str) -> Leaderboard | None:
        """A suite's leaderboard, read once; None where it has no such profile, or its runs cannot be read."""
        if name not in known:
            known[name] = None
            with contextlib.suppress(SuiteError):
                known[name] = make_leaderboard(get_suite(name), scale, store)
        return known[name]

    return judge(find, scale)
