"""Set a suite's finished runs beside the paper's tables: CSV, Markdown and figures; or all suites', with an index.

python leaderboards/build.py --suite sample_efficiency --runs runs --profile laptop
python leaderboards/build.py --all --runs runs
python leaderboards/build.py --all --runs runs --runs /of/another/machine
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from leaderboards.board_files import Paths, make_folder, write_leaderboard, write_page, write_pages
from leaderboards.boards import Leaderboard, aggregate, check_store, enter_challengers, make_leaderboard, read_runs
from leaderboards.challenges import summarize_challenges
from leaderboards.claim_pages import render_claims_csv, render_claims_page, summarize_claims
from leaderboards.claims import ALL_CLAIMS
from leaderboards.index import IndexLine, estimate_cost, render_index, render_index_csv
from leaderboards.joined_stores import joined
from leaderboards.judged_claims import JudgedClaim, judge
from leaderboards.terminal import print_summary
from suite.arguments import positive, program
from suite.errors import RecordError, SpecError, SuiteError
from suite.files import write_atomically
from suite.suites import get_suite, list_suites
from suite.tables import Suite


def build(suite_name: str, profile: str, store: Path, num_seeds: int | None = None, out: Path | None = None) -> Paths:
    """Read the runs of one suite at one scale, write its leaderboard and print it in short.

    Args:
        suite_name: as ``suite.suites.get_suite`` knows it.
        profile: the suite's scale.
        store: the run store that ``launchers/grid.py`` wrote.
        num_seeds: seeds planned per cell; None: as many as the fullest cell has.
        out: folder to write to; None: ``<store>/leaderboards/<suite_name>``.

    Raises:
        SpecError: for an unknown suite or profile, a store that is not there, or a suite that does not fit its tables.
        RecordError: for runs that must not be averaged.
        RunError: if the files cannot be written.
    """
    suite = get_suite(suite_name)
    leaderboard = make_leaderboard(suite, profile, store, num_seeds)
    claims = find_claims(suite, leaderboard, store)
    out = out or store / "leaderboards" / suite.name
    paths = write_leaderboard(leaderboard, store, out)
    write_page(leaderboard, store, out, claims)
    print_summary(leaderboard, [*summarize_challenges(leaderboard), *summarize_claims(claims)], paths.markdown)
    return paths


def find_claims(suite: Suite, leaderboard: Leaderboard, store: Path) -> list[JudgedClaim]:
    """The claims that speak of one suite, judged at its scale among all of their paper's."""
    if _is_smoke(leaderboard.profile_name):
        return []
    found: dict[str, Leaderboard | None] = {suite.name: leaderboard}
    find = functools.partial(_find_leaderboard, found, profile=leaderboard.profile_name, store=store)
    claims = judge(find, store, leaderboard.profile_name)
    return [judged for judged in claims if suite.name in judged.suites]


def _is_smoke(profile: str) -> bool:
    """Whether its numbers mean nothing, so that no claim is judged by them."""
    return profile.partition("-")[0] == "smoke"


def _find_leaderboard(found: dict[str, Leaderboard | None], name: str, profile: str, store: Path) -> Leaderboard | None:
    """A suite's leaderboard, read once; None where it has no such profile, or its runs cannot be read."""
    if name not in found:
        try:
            found[name] = make_leaderboard(get_suite(name), profile, store)
        except SuiteError:
            found[name] = None
    return found[name]


def build_all(store: Path, profile: str | None = None, num_seeds: int | None = None, out: Path | None = None) -> bool:
    """Build every suite that has runs, at every scale or the given one, and the index of all suites.

    A suite that cannot be built is named in the index and does not keep the others from it.

    Args:
        store: the run store that ``launchers/grid.py`` wrote.
        profile: the only scale to look at; None: all.
        num_seeds: seeds planned per cell; None: as many as the fullest cell has.
        out: folder of the index and of the suites' own; None: ``<store>/leaderboards``.

    Returns:
        Whether all could be built.
    """
    check_store(store)
    out = out or store / "leaderboards"
    make_folder(out)
    lines = []
    for suite in map(get_suite, list_suites()):
        for name in _started_profiles(suite, store, profile) or [""]:
            lines.append(_build_line(suite, name, store, num_seeds, out))
            print(lines[-1].summary)
    write_atomically(out / "index.csv", render_index_csv(lines).encode())
    write_atomically(out / "index.md", render_index(lines).encode())
    claims = _judge_all(lines, store)
    _write_claims(claims, out)
    write_pages(lines, claims, store, out)
    print(f"Index: {out / 'index.md'}\nClaims: {out / 'claims.csv'}")
    return not any(line.error for line in lines)


def _judge_all(lines: Sequence[IndexLine], store: Path) -> list[JudgedClaim]:
    """Judge the papers' claims at every scale that has runs."""
    scales = dict.fromkeys(line.profile_name for line in lines if line.profile_name and line.leaderboard)
    claims = []
    for scale in scales:
        if not _is_smoke(scale):
            found = {line.suite.name: line.leaderboard for line in lines if line.profile_name == scale}
            claims += judge(functools.partial(_find_leaderboard, found, profile=scale, store=store), store, scale)
    return claims


def _write_claims(claims: Sequence[JudgedClaim], out: Path) -> None:
    """Write ``claims.csv`` and ``claims/<paper>.md``."""
    write_atomically(out / "claims.csv", render_claims_csv(claims).encode())
    make_folder(out / "claims")
    for paper in ALL_CLAIMS:
        page = render_claims_page(paper, [judged for judged in claims if judged.paper is paper])
        write_atomically(out / "claims" / f"{paper.name}.md", page.encode())


def _build_line(suite: Suite, profile: str, store: Path, num_seeds: int | None, out: Path) -> IndexLine:
    """Build one suite at one scale, and tell of it; without runs (profile "") only the paper's numbers are read."""
    try:
        scale = profile or ("paper" if "paper" in suite.profiles else next(iter(suite.profiles)))
        suite = enter_challengers(suite, scale, store)
        runs = read_runs(suite, scale, store, num_seeds)
        leaderboard = aggregate(suite, scale, runs)
        if not profile:
            return IndexLine(suite, leaderboard=leaderboard, planned=estimate_cost(leaderboard.profile, runs))
        write_leaderboard(leaderboard, store, out / suite.name)
        return IndexLine(suite, profile, leaderboard, estimate_cost(leaderboard.profile, runs))
    except SuiteError as error:
        print(f"error: {suite.name}{profile and f', {profile}'}: {error}", file=sys.stderr)
        return IndexLine(suite, profile, error=str(error))


def _started_profiles(suite: Suite, store: Path, only: str | None) -> list[str]:
    """The profiles of which at least one experiment of an entry has a folder in the store."""
    try:
        found = set(os.listdir(store / "experiments"))
    except FileNotFoundError:
        return []
    started = []
    for name in [only] if only else [*suite.profiles, "smoke"]:
        profile = _enter_readable(suite, name, store).profile(name)
        candidates = (candidate for entry in profile.entries for candidate in entry.candidates)
        if any(f"{candidate.model}-{candidate.arm_id}" in found for candidate in candidates):
            started.append(name)
    return started


def _enter_readable(suite: Suite, profile: str, store: Path) -> Suite:
    """Enter the store's challengers; a record that cannot be read is told where the suite is built."""
    try:
        return enter_challengers(suite, profile, store)
    except RecordError:
        return suite


# -- the command line


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("build", "build.py"), description="Set a suite's finished runs beside the paper's tables."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", metavar="NAME", help="which suite, such as sample_efficiency")
    what.add_argument("--all", action="store_true", help="every suite that has runs, and an index of all suites")
    parser.add_argument(
        "--runs",
        type=Path,
        action="append",
        metavar="DIR",
        help="run store (default: runs); given again, all are joined",
    )
    parser.add_argument(
        "--profile", help="laptop, desktop, gpu, paper or smoke (default: laptop; with --all, every one that has runs)"
    )
    parser.add_argument("--dataset", metavar="NAME", help="the runs that grid.py --dataset NAME has trained")
    parser.add_argument(
        "--seeds", type=positive, metavar="N", help="seeds planned per cell (default: as many as the fullest cell has)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the files (default: RUNS/leaderboards, or its folder SUITE)"
    )
    args = parser.parse_args(arguments)
    args.runs = args.runs or [Path("runs")]
    if args.dataset:
        args.profile = f"{args.profile or 'laptop'}@{args.dataset}"
    try:
        for name in list_suites() if args.all else [args.suite]:
            get_suite(name).profile(args.profile or "laptop")
        for store in args.runs:
            check_store(store)
        args.out = args.out or args.runs[0] / "leaderboards" / (get_suite(args.suite).name if args.suite else "")
    except SpecError as error:
        parser.error(str(error))
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0, 1 for what went wrong with the records, 2 for a misused command line."""
    args = _parse(arguments)
    try:
        with joined(args.runs) as store:
            if args.all:
                return 0 if build_all(store, args.profile, args.seeds, args.out) else 1
            build(args.suite, args.profile or "laptop", store, args.seeds, args.out)
    except SuiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
