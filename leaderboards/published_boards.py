"""The boards in ``leaderboards/published/``: where each lies, and its headline as it stands there."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import get_args

from suite.errors import RecordError
from suite.protocol_changes import PROTOCOL_VERSION
from suite.spec import ProfileName
from suite.suites import get_suite, list_suites

PUBLISHED = Path(__file__).parent / "published"
_HEADLINE = re.compile(r"^Headline: (.*?)\.?$", re.MULTILINE)
_SEEDS_NEEDED = re.compile(r"^To find such an effect takes (\d+) seeds of each arm", re.MULTILINE)
_PAPER = re.compile(r" \(paper: [^)]*\)")
_GAPS = re.compile(r"^(\d+) cells: .* (\d+) missing\.$", re.MULTILINE)


def list_boards(folder: Path) -> list[Path]:
    """A suite's published boards, the smallest scale first."""
    return [board for profile in get_args(ProfileName) if (board := folder / f"{profile}.md").exists()]


def read_runs(board: Path) -> list[dict[str, str]]:
    """Those that have a result."""
    with board.with_suffix(".runs.csv").open(encoding="utf-8") as file:
        return [run for run in csv.DictReader(file) if run["commit"]]


def read_own_runs(board: Path) -> list[dict[str, str]]:
    """Those of the suite's own grid: without challengers'."""
    grid = get_suite(board.parent.name).profile(board.stem).experiments()
    models = {experiment.model for experiment in grid}
    return [run for run in read_runs(board) if run["model"] in models]


def read_headline(board: Path) -> str:
    """``ConViT over DeiT …: +1.78 ± 0.84 points``, the paper's, what is missing, and an older protocol.

    Raises:
        RecordError: there is no such line.
    """
    text = board.read_text(encoding="utf-8")
    found = _HEADLINE.search(text)
    if found is None:
        raise RecordError(f"{board} has no line that begins with Headline: build it again")
    gaps = _GAPS.search(text)
    missing = f"; {gaps[2]} of {gaps[1]} cells missing" if gaps and gaps[2] != "0" else ""
    protocols = {int(run["protocol_version"]) for run in read_runs(board)}
    old = f"; of protocol {min(protocols)}" if protocols and min(protocols) < PROTOCOL_VERSION else ""
    return f"{found[1]}{missing}{old}"


def read_seeds_needed(board: Path) -> int | None:
    """Of each arm, to find the headline's effect, as the board says; boards of before, and such as cannot, do not."""
    found = _SEEDS_NEEDED.search(board.read_text(encoding="utf-8"))
    return found and int(found[1])


def tell_published(suite_name: str, profile: str) -> list[str]:
    """A line that sets the published headline of a scale beside a store's own; none where no such board is here.

    Args:
        suite_name: as ``suite.suites.get_suite`` knows it; one of the user's own has no published board.
        profile: the scale.
    """
    board = PUBLISHED / suite_name / f"{profile}.md"
    if suite_name not in list_suites() or not board.exists():
        return []
    num_seeds = len({run["seed"] for run in read_own_runs(board)})
    told = _PAPER.sub("", read_headline(board)).removeprefix(f"{get_suite(suite_name).headline.text}: ")
    place = board.relative_to(Path.cwd()) if board.is_relative_to(Path.cwd()) else board
    return [f"Published at this scale, {num_seeds} seed{'s' * (num_seeds > 1)}: {told} ({place})."]
