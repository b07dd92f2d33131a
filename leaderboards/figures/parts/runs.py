"""Places in a table -> the first run behind each of their cells, and the notes that name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from suite.spec.profile import Place
from suite.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from leaderboards.boards.board import Leaderboard

Chosen = Mapping[str, tuple[int, RunDirectory]]  # title -> (seed, run)
_NO_BREAK = "\N{NO-BREAK SPACE}"


def first_runs(leaderboard: Leaderboard, places: Mapping[str, Place]) -> Chosen:
    """The run of the lowest seed that its cell shows, for each title that has one."""
    cells = {title: leaderboard.cell(place) for title, place in places.items()}
    return {title: min(cell.provenance.runs.items()) for title, cell in cells.items() if cell and cell.provenance.runs}


def name_seeds(runs: Chosen) -> str:
    """The note that single runs are shown, ``One run of each model, seed 0.``, its numbers not parted from "seed"."""
    seeds = {title: seed for title, (seed, _) in runs.items()}
    if len(set(seeds.values())) > 1:
        return f"One run of each model: {', '.join(f'{title} seed{_NO_BREAK}{seed}' for title, seed in seeds.items())}."
    of_each = "One run of each model" if len(seeds) > 1 else "One run"
    return f"{of_each}, seed{_NO_BREAK}{min(seeds.values())}."


def name_missing(leaderboard: Leaderboard, places: Mapping[str, Place], drawn: Iterable[str]) -> str:
    """The note about what this profile plans but cannot show yet."""
    drawn = set(drawn)
    missing = [title for title, place in places.items() if title not in drawn and leaderboard.cell(place) is not None]
    return f"Not there yet: {', '.join(missing)}." if missing else ""
