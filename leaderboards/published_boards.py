"""The boards in ``leaderboards/published/``, their runs and their headlines."""

import csv
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from suite.base.errors import RecordError
from suite.base.frozen import Frozen
from suite.papers import get_suite, list_suites
from suite.spec.profile import ProfileName
from suite.store.results import PROTOCOL_VERSION

PUBLISHED = Path(__file__).parent / "published"


class BoardHeadline(Frozen):
    """The headline of a board, as ``<profile>.headline.json`` holds it."""

    told: str  # such as ``ConViT over DeiT: +2.0 ± 1.9 points (paper: +13.0)``
    ours: str  # such as ``+2.0 ± 1.9 points``
    mean: float | None  # None without seeds
    variances: tuple[float, ...]  # of one seed's difference: one, or none below two seeds
    num_cells: int
    num_missing: int  # cells without any run


def list_boards(folder: Path) -> list[Path]:
    """A suite's published boards, the smallest scale first."""
    return [board for profile in get_args(ProfileName) if (board := folder / f"{profile}.md").exists()]


def read_runs(board: Path) -> list[dict[str, str]]:
    """The lines of a board's runs that have a result."""
    with board.with_suffix(".runs.csv").open(encoding="utf-8") as file:
        return [run for run in csv.DictReader(file) if run["commit"]]


def read_own_runs(board: Path) -> list[dict[str, str]]:
    """The runs of the suite's own grid, without custom models."""
    grid = get_suite(board.parent.name).profile(board.stem).experiments()
    models = {experiment.model for experiment in grid}
    return [run for run in read_runs(board) if run["model"] in models]


def is_outdated(board: Path) -> bool:
    """Whether the board shows runs of experiments that its suite has changed since."""
    known = {experiment.configuration for experiment in get_suite(board.parent.name).profile(board.stem).experiments()}
    return any(run["run"].rpartition("/")[0] not in known for run in read_own_runs(board))


def read_headline(board: Path) -> BoardHeadline:
    """Read the headline file of a board; RecordError if it cannot be read."""
    path = board.with_suffix(".headline.json")
    try:
        return BoardHeadline.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise RecordError(f"cannot read {path}: build the board again from its records with build.py") from error


def describe_headline(board: Path) -> str:
    """A board's headline, with the number of missing cells and an older protocol or recipe."""
    found = read_headline(board)
    missing = f"; {found.num_missing} of {found.num_cells} cells missing" if found.num_missing else ""
    protocols = {int(run["protocol_version"]) for run in read_runs(board)}
    old = f"; of protocol {min(protocols)}" if protocols and min(protocols) < PROTOCOL_VERSION else ""
    return f"{found.told}{missing}{old}{'; of an earlier recipe' * is_outdated(board)}"


def describe_published(suite_name: str, profile: str) -> list[str]:
    """A line with the published headline of a suite at a scale; none if no such board of today's recipe is here."""
    board = PUBLISHED / suite_name / f"{profile}.md"
    if suite_name not in list_suites() or not board.exists() or is_outdated(board):
        return []
    num_seeds = len({run["seed"] for run in read_own_runs(board)})
    place = board.relative_to(Path.cwd()) if board.is_relative_to(Path.cwd()) else board
    return [f"Published at this scale, {num_seeds} seed{'s' * (num_seeds > 1)}: {read_headline(board).ours} ({place})."]
