"""A place in a table -> the finished runs behind its cell, and the notes that name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from suite.profiles import Place
from suite.records import RunDirectory
from suite.run_store import find_runs

if TYPE_CHECKING:
    from leaderboards.boards import Leaderboard

Chosen = Mapping[str, tuple[int, RunDirectory]]  # title -> (seed, run)
_NO_BREAK = "\N{NO-BREAK SPACE}"


def runs_behind(leaderboard: Leaderboard, place: Place, store: Path) -> dict[int, RunDirectory]:
    """The finished runs whose values the cell shows, by seed in ascending order."""
    cell = leaderboard.cell(place)
    if cell is None or cell.provenance.experiment is None:
        return {}
    runs = find_runs(store, cell.provenance.experiment)
    return {seed: runs[seed] for seed in sorted(cell.estimate.values) if seed in runs}


def first_runs(leaderboard: Leaderboard, places: Mapping[str, Place], store: Path) -> Chosen:
    """The run of the lowest finished seed for each title that has one."""
    runs = {title: runs_behind(leaderboard, place, store) for title, place in places.items()}
    return {title: min(found.items()) for title, found in runs.items() if found}


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
