"""Set a suite's finished runs beside the paper's tables: CSV, Markdown and figures; or all suites', with an index.

python leaderboards/build.py --suite sample_efficiency --runs runs --profile laptop
python leaderboards/build.py --all --runs runs
python leaderboards/build.py --all --runs runs --runs /of/another/machine
python leaderboards/build.py --suite sample_efficiency --runs runs --pack    # and their records in one file
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from leaderboards import board_files
from leaderboards.boards.board import check_store, make_leaderboard
from leaderboards.boards.joined_stores import joined
from leaderboards.entries import with_entries
from leaderboards.packed_records import unpacked
from leaderboards.published_boards import describe_published
from leaderboards.survey import IndexLine, find_claims, judge_all, survey
from leaderboards.text.claims import render_claims_csv, render_claims_page, summarize_claims
from leaderboards.text.custom_models import summarize_comparisons
from leaderboards.text.index import render_index, render_index_csv, summarize_line
from leaderboards.text.terminal import print_summary
from suite.base.arguments import a_path, program, some_seeds
from suite.base.endings import ends_in_message
from suite.base.errors import SpecError, SuiteError
from suite.base.exit_codes import Exit
from suite.base.files import write_atomically
from suite.papers import get_suite, list_claims, list_suites


def build(
    suite_name: str,
    profile: str,
    store: Path,
    seeds: Sequence[int] | None = None,
    out: Path | None = None,
    *,
    pack: bool = False,
) -> Path:
    """Read the runs of one suite at one scale, write its leaderboard and print it in short.

    Args:
        suite_name, profile: the suite, as ``suite.papers.get_suite`` knows it, and its scale.
        store: the run store.
        seeds: seeds planned for each cell; None: those of the fullest cell.
        out: the folder to write to, which is returned; None: ``<store>/leaderboards/<suite_name>``.
        pack: whether to write the finished runs' records as one file; a file that is there is always renewed.

    Raises:
        SpecError: The suite, profile or store is unknown, or the suite does not fit its tables.
        RecordError: Runs must not be averaged.
        RunError: The files cannot be written.
    """
    suite = get_suite(suite_name)
    leaderboard = with_entries(make_leaderboard(suite, profile, store, seeds))
    claims = find_claims(leaderboard, store)
    out = out or store / "leaderboards" / suite.name
    markdown = board_files.write_leaderboard(leaderboard, out)
    board_files.write_page(leaderboard, out, claims)
    records = board_files.write_records(leaderboard, out, pack=pack)
    messages = [
        *describe_published(suite_name, profile),
        *summarize_comparisons(leaderboard),
        *summarize_claims(claims),
    ]
    if records:
        print(records)
    print_summary(leaderboard, messages, markdown.with_suffix(".html"))
    return out


def build_all(
    store: Path,
    profile: str | None = None,
    seeds: Sequence[int] | None = None,
    out: Path | None = None,
    *,
    pack: bool = False,
) -> bool:
    """Build every suite that has runs, at every scale or the given one, and the index of all suites.

    A suite that cannot be built is named in the index.

    Args:
        store, seeds, pack: arguments of ``build``.
        profile: the only scale to look at; None: all.
        out: the folder of the index and of the suites' folders; None: ``<store>/leaderboards``.

    Returns:
        Whether all could be built.
    """
    check_store(store)
    out = out or store / "leaderboards"
    board_files.make_folder(out)
    lines = [_write_line(line, out, pack=pack) for line in survey(store, profile, seeds)]
    write_atomically(out / "index.csv", render_index_csv(lines).encode())
    write_atomically(out / "index.md", render_index(lines).encode())
    claims = judge_all(lines, store)
    write_atomically(out / "claims.csv", render_claims_csv(claims).encode())
    board_files.make_folder(out / "claims")
    for paper in list_claims():
        page = render_claims_page(paper, [judged for judged in claims if judged.paper is paper])
        write_atomically(out / "claims" / f"{paper.name}.md", page.encode())
    board_files.write_effects(claims, out / "claims")
    board_files.write_pages(lines, claims, out)
    print(f"Index: {out / 'index.md'}\nClaims: {out / 'claims.csv'}")
    return not any(line.error for line in lines)


def _write_line(line: IndexLine, out: Path, *, pack: bool) -> IndexLine:
    """Write a leaderboard that has runs and print its line; one that cannot be written gets an error."""
    records = ""
    if line.leaderboard and line.cost:
        try:
            board_files.write_leaderboard(line.leaderboard, out / line.suite.name)
            records = board_files.write_records(line.leaderboard, out / line.suite.name, pack=pack)
        except SuiteError as error:
            line = IndexLine(line.suite, line.profile_name, error=str(error))
    if line.error:
        scale = line.profile_name and f", {line.profile_name}"
        print(f"error: {line.suite.name}{scale}: {line.error}", file=sys.stderr)
    print(summarize_line(line))
    if records:
        print(f"  {records}")
    return line


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("build", "build.py"), description="Set a suite's finished runs beside the paper's tables."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", metavar="NAME", help="which suite, such as sample_efficiency")
    what.add_argument("--all", action="store_true", help="every suite that has runs, and an index of all suites")
    parser.add_argument(
        "--runs",
        type=a_path,
        action="append",
        metavar="DIR",
        help="run store (default: runs), or a file that --pack wrote; given again, all are joined",
    )
    parser.add_argument(
        "--profile", help="laptop, desktop, gpu, paper or smoke (default: laptop; with --all, every one that has runs)"
    )
    parser.add_argument("--dataset", metavar="NAME", help="the runs that grid.py --dataset NAME has trained")
    parser.add_argument(
        "--seeds",
        type=some_seeds,
        metavar="N",
        help="seeds planned for each cell, as grid.py takes them (default: those of the fullest)",
    )
    parser.add_argument(
        "--out", type=a_path, metavar="DIR", help="folder for the files (default: RUNS/leaderboards, or SUITE in it)"
    )
    parser.add_argument(
        "--pack",
        action="store_true",
        help="also write the finished runs' records, without weights, as one file, PROFILE.records.tar.xz, which is "
        "renewed where it is there already",
    )
    args = parser.parse_args(arguments)
    args.runs = args.runs or [Path("runs")]
    if args.dataset:
        args.profile = f"{args.profile or 'laptop'}@{args.dataset}"
    try:
        suites = [get_suite(name) for name in (list_suites() if args.all else [args.suite])]
        if not any(suite.has_profile(args.profile or "laptop") for suite in suites):
            max(suites, key=lambda suite: len(suite.profiles)).profile(args.profile)  # says which there are
        for store in args.runs:
            if not store.is_file():
                check_store(store)
        if args.runs[0].is_file() and not args.out:
            raise SpecError(f"{args.runs[0]} is a file: name the folder for the leaderboard with --out")
        args.out = args.out or args.runs[0] / "leaderboards" / (get_suite(args.suite).name if args.suite else "")
    except SpecError as error:
        parser.error(str(error))
    return args


@ends_in_message
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: 0, 1 if a suite could not be built, 2 if the command line is wrong."""
    args = _parse(arguments)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(joined([stack.enter_context(unpacked(path)) for path in args.runs]))
        if args.all:
            finished = build_all(store, args.profile, args.seeds, args.out, pack=args.pack)
            return Exit.DONE if finished else Exit.FAILED
        build(args.suite, args.profile or "laptop", store, args.seeds, args.out, pack=args.pack)
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
