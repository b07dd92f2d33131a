"""The published boards -> the answers in README.md, the headlines in the manual, and the runs beside the boards.

    python -m leaderboards.overview     # after boards were copied to leaderboards/published/

Each file has its table between two comments. Read are the boards themselves, so that the tables say what they say: each
``render_...`` takes the folder of the file that holds the table, from which links start, and that of the boards.
"""

import csv
import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from leaderboards import published_boards
from leaderboards.report.index_page import FIRST
from leaderboards.significance.power import seeds_needed
from leaderboards.text.claims import ANSWERS
from leaderboards.text.notation import format_signed, significant_decimals
from suite.base.arguments import spell_seeds
from suite.base.errors import RecordError
from suite.base.files import write_atomically
from suite.papers import get_suite, list_claims, list_suites, suite_module

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- boards: written by `python -m leaderboards.overview` -->"
END = "<!-- end of boards -->"


def render_table(folder: Path, published: Path) -> str:
    """Markdown with a line a suite: its question and the headlines of its published boards."""
    lines = ["| Suite | Of | Question | Headline |", "|---|---|---|---|"]
    found = {name: published_boards.list_boards(published / name) for name in list_suites()}
    names = sorted(found, key=lambda name: (not found[name], name != FIRST, name))  # what there is to see comes first
    for name in names:
        suite, boards = get_suite(name), found[name]
        link = os.path.relpath(boards[0] if boards else suite_module(name).__file__ or "", folder)
        paper = suite.paper.partition(" (")[0]
        headlines = [
            f"[{board.stem}]({os.path.relpath(board, folder)}): {published_boards.describe_headline(board)}"
            for board in boards
        ]
        headline = "<br>".join(headlines) or f"{suite.headline.text}: not trained yet"
        lines.append(f"| [{name}]({link}) | {paper}, {suite.item} | {suite.question} | {headline} |")
    return "\n".join(lines)


def render_answers(folder: Path, published: Path) -> str:
    """Markdown with a line a primary claim: its answer at laptop scale and its effect, as ``claims.csv`` has them."""
    lines = ["| Claim | Answer | Effect, points | The paper's | Seeds |", "|---|---|---:|---:|---:|"]
    with (published / "claims.csv").open(encoding="utf-8") as file:
        judged = {row["claim"]: row for row in csv.DictReader(file) if row["scale"] == "laptop"}
    papers = sorted(list_claims(), key=lambda claims: FIRST not in {s for one in claims.claims for s in one.suites})
    for claim in (one for paper in papers for one in paper.claims if one.primary and one.name in judged):
        row, board = judged[claim.name], os.path.relpath(published / claim.suites[0] / "laptop.md", folder)
        half = (float(row["high"]) - float(row["low"])) / 2
        effect = format_signed(float(row["effect"]), decimals := significant_decimals(half))
        words, answer = claim.statement.partition(":")[0].rstrip("."), ANSWERS[row["verdict"]].rstrip(",")
        paper = format_signed(float(row["paper_effect"]), 1)
        lines.append(f"| [{words}]({board}) | {answer} | {effect} ± {half:.{decimals}f} | {paper} | {row['n']} |")
    return "\n".join(lines)


def replace_table(text: str, table: str) -> str:
    """Put the table between the two comments; RecordError unless each stands there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RecordError(f"found no place for the table of boards; expected the lines {BEGIN} and {END}, once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def render_origins(folder: Path, published: Path) -> str:
    """Markdown with a line a published board: the command and the seeds of its runs, their commits and their time."""
    lines = [
        "| Leaderboard | Runs | Seeds that find its headline | Command | Commits | Core-hours a seed, fastest runs |",
        "|---|---|---:|---|---|---:|",
    ]
    for suite in list_suites():
        for board in published_boards.list_boards(published / suite):
            lines.append(_format_origin(board, suite, os.path.relpath(board, folder)))
    return "\n".join(lines)


def _format_origin(board: Path, suite: str, link: str) -> str:
    """A board's line. Custom models are counted apart, and so are seeds that not all configurations have, as a fuller
    suite shares some of them."""
    profile, runs, num_all = board.stem, published_boards.read_own_runs(board), len(published_boards.read_runs(board))
    hours_of: dict[str, dict[str, float]] = {}  # by configuration and seed
    for run in runs:
        hours_of.setdefault(run["run"].rpartition("/")[0], {})[run["seed"]] = float(run["device_hours"])
    seeds = sorted(map(int, set.intersection(*map(set, hours_of.values()))))
    num_seeds = len(seeds)
    num_runs = num_seeds * len(hours_of)
    num_further = len(runs) - num_runs
    hours = sum(min(own.values()) for own in hours_of.values())  # the run that other work disturbed least
    commits = Counter(run["commit"][:7] for run in runs).most_common()
    command = f"python launchers/grid.py --suite {suite}{f' --profile {profile}' * (profile != 'laptop')}"
    headline = published_boards.read_headline(board)
    needed = seeds_needed(headline.mean or 0.0, math.sqrt(sum(headline.variances)))
    further = f", {num_further} of further seeds" * (num_further > 0)
    others = f", {num_all - len(runs)} of custom models" * (num_all > len(runs))
    return (
        f"| [{suite}, {profile}]({link}) "
        f"| {num_runs} for {num_seeds} seed{'s' * (num_seeds > 1)}{further}{others} "
        f"| {needed or '-'} | `{command}{f' --seeds {spell_seeds(seeds)}' * (num_seeds > 1)}` "
        f"| {', '.join(f'{count} of {name}' for name, count in commits)} | {hours:.2g} |"
    )


FILES: dict[Path, Callable[[Path, Path], str]] = {
    ROOT / "README.md": render_answers,
    ROOT / "docs" / "index.md": render_answers,
    ROOT / "docs" / "suites.md": render_table,
    published_boards.PUBLISHED / "README.md": render_origins,
}

if __name__ == "__main__":
    for path, render in FILES.items():
        table = render(path.parent, published_boards.PUBLISHED)
        write_atomically(path, replace_table(path.read_text(encoding="utf-8"), table).encode())
