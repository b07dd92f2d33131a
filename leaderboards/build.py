"""Set a suite's finished runs beside the paper's table: CSV, Markdown and, where the paper has one, a figure.

python leaderboards/build.py --suite sample_efficiency --runs runs --profile laptop
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboards.accounting import render_accounting
from leaderboards.aggregate import Board, aggregate
from leaderboards.collect import collect
from leaderboards.layout import check_layout
from leaderboards.papers import load_paper_table
from suite.errors import RunError, SpecError, SuiteError
from suite.files import write_atomically
from suite.spec import Suite
from suite.suites import get_suite


@dataclass(frozen=True)
class Paths:
    """The files of one leaderboard; ``figure`` is None where the suite has none."""

    csv: Path
    markdown: Path
    figure: Path | None
    accounting: Path


def build(suite_name: str, profile: str, store: Path, num_seeds: int | None = None, out: Path | None = None) -> Paths:
    """Read the runs of one suite at one scale, write its leaderboard and print it in short.

    Args:
        suite_name: a module of ``suite.suites``.
        profile: the suite's scale.
        store: the run store that ``launchers/grid.py`` wrote.
        num_seeds: seeds planned per cell; None: as many as the fullest cell has.
        out: folder to write to; None: ``<store>/leaderboards/<suite_name>``.

    Raises:
        SpecError: for an unknown suite or profile, a store that is not there, or a suite that does not fit its table.
        RunError: if the files cannot be written.
    """
    suite = get_suite(suite_name)
    board = make_board(suite, profile, store, num_seeds)
    accounting = render_accounting(suite.profile(profile), store)
    paths = write_board(board, accounting, out or store / "leaderboards" / suite_name)
    from leaderboards.terminal import print_summary

    print_summary(board, paths.markdown)
    return paths


def make_board(suite: Suite, profile_name: str, store: Path, num_seeds: int | None = None) -> Board:
    """The leaderboard as data."""
    _check_store(store)
    profile = suite.profile(profile_name)
    paper = load_paper_table(suite.table, suite.row_keys)
    check_layout(suite, profile, paper)
    return aggregate(suite, profile_name, paper, collect(profile, store, num_seeds))


def write_board(board: Board, accounting: str, out: Path) -> Paths:
    """Write ``<profile>.csv``, ``.md``, ``.png`` and ``.runs.csv`` into ``out``."""
    from leaderboards.render import render_csv, render_markdown

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {out}: {error.strerror}. Choose another with --out.") from error
    path = out / board.profile_name
    csv_path, markdown_path = path.with_suffix(".csv"), path.with_suffix(".md")
    write_atomically(csv_path, render_csv(board).encode())
    write_atomically(markdown_path, render_markdown(board).encode())
    accounting_path = path.with_suffix(".runs.csv")
    write_atomically(accounting_path, accounting.encode())
    figure_path = _write_figure(board, path.with_suffix(".png"))
    return Paths(csv=csv_path, markdown=markdown_path, figure=figure_path, accounting=accounting_path)


def _write_figure(board: Board, path: Path) -> Path | None:
    if board.suite.figure is None:
        return None
    from leaderboards.figure import draw_figure

    write_atomically(path, draw_figure(board, board.suite.figure))
    return path


def _check_store(store: Path) -> None:
    if not store.is_dir():
        raise SpecError(
            f"there is no run store {store}: expected a folder that holds experiments/. "
            "Run launchers/grid.py first, or name another folder with --runs."
        )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Set a suite's finished runs beside the paper's table.")
    parser.add_argument("--suite", required=True, metavar="NAME", help="which suite, such as sample_efficiency")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="run store (default: runs)")
    parser.add_argument("--profile", default="laptop", help="laptop, gpu, paper or smoke (default: laptop)")
    parser.add_argument(
        "--seeds", type=positive, metavar="N", help="seeds planned per cell (default: as many as the fullest cell has)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the files (default: RUNS/leaderboards/SUITE)"
    )
    args = parser.parse_args(arguments)
    try:
        get_suite(args.suite).profile(args.profile)
        _check_store(args.runs)
    except SpecError as error:
        parser.error(str(error))
    return args


def positive(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0, 1 for what went wrong with the records, 2 for a misused command line."""
    args = _parse(arguments)
    try:
        build(args.suite, args.profile, args.runs, args.seeds, args.out)
    except SuiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
