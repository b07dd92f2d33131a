"""Places in a table -> what the first run behind each of their cells has left, and the notes that name these runs."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from leaderboards.boards.board import Leaderboard
from suite.spec.profile import Place
from suite.store.run_directory import RunDirectory

Read = TypeVar("Read")
_NO_BREAK = "\N{NO-BREAK SPACE}"


def read_first_runs(
    leaderboard: Leaderboard, places: Mapping[str, Place], read: Callable[[RunDirectory], Read | None]
) -> tuple[dict[str, Read], tuple[str, ...]]:
    """Read the run of the lowest seed that each place's cell shows. Returns what is not None, by the places' titles,
    and the notes that name these seeds and the models that are missing."""
    cells = {title: leaderboard.cell(place) for title, place in places.items()}
    runs = {title: min(cell.provenance.runs.items()) for title, cell in cells.items() if cell and cell.provenance.runs}
    read_of = {title: (seed, read(run)) for title, (seed, run) in runs.items()}
    found = {title: content for title, (_, content) in read_of.items() if content is not None}
    if not found:
        return {}, ()
    return found, (name_seeds({title: runs[title][0] for title in found}), name_missing(leaderboard, places, found))


def name_seeds(seeds: Mapping[str, int]) -> str:
    """The note ``One run of each model, seed 0.`` where single runs are shown."""
    if len(set(seeds.values())) > 1:
        return f"One run of each model: {', '.join(f'{title} seed{_NO_BREAK}{seed}' for title, seed in seeds.items())}."
    of_each = "One run of each model" if len(seeds) > 1 else "One run"
    return f"{of_each}, seed{_NO_BREAK}{min(seeds.values())}."


def name_missing(leaderboard: Leaderboard, places: Mapping[str, Place], drawn: Iterable[str]) -> str:
    """The note about what this profile plans but cannot show yet."""
    drawn = set(drawn)
    missing = [title for title, place in places.items() if title not in drawn and leaderboard.cell(place) is not None]
    return f"Not there yet: {', '.join(missing)}." if missing else ""
