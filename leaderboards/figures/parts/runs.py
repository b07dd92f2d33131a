"""Places in a table -> what the first run behind each of their cells has left, and the notes that name these runs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import Curve, read_curve
from suite.spec.profile import Place
from suite.store.run_directory import RunDirectory

Read = TypeVar("Read")
MOST_BANDS = 3  # in a panel: more hide each other
_NO_BREAK = "\N{NO-BREAK SPACE}"


def read_first_runs(
    leaderboard: Leaderboard, places: Mapping[str, Place], read: Callable[[RunDirectory], Read | None]
) -> tuple[dict[str, Read], tuple[str, ...]]:
    """Read the run of the lowest seed that each place's cell shows. Returns what is not None, by the places' titles,
    and the notes that name these seeds and the models that are missing."""
    cells = {title: leaderboard.cell(place) for title, place in places.items()}
    runs = {title: min(cell.provenance.runs.items()) for title, cell in cells.items() if cell and cell.provenance.runs}
    found = {title: content for title, (_, run) in runs.items() if (content := read(run)) is not None}
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


def curve_behind(leaderboard: Leaderboard, place: Place, metric: str, after_parents: bool = False) -> Curve | None:
    """The mean over the finished runs of a place's cell; None without any, or where a seed failed.

    Args:
        leaderboard, place: the cell's leaderboard and place.
        metric: a number that stands in ``metrics.jsonl``.
        after_parents: true to begin at the epoch where the training of the runs' parents ended.
    """
    cell = leaderboard.cell(place)
    if cell is None or not cell.is_usable:
        return None
    curve, experiment = read_curve(cell.provenance.runs.values(), metric), cell.provenance.experiment
    if curve and experiment and after_parents:
        return replace(curve, epochs=curve.epochs + experiment.epochs_before)
    return curve


def name_num_seeds(curves: Iterable[Curve], num_lines: int = 1) -> str:
    """The note that says what lines are, and bands, or with many lines the bars at their ends."""
    num, what = count_seeds(curves), "bands" if num_lines <= MOST_BANDS else "bars at their ends"
    return "One seed." if num == "1" else f"Lines: mean of {num} seeds; {what}: from the lowest to the highest."


def count_seeds(curves: Iterable[Curve]) -> str:
    """Such as "8", or "6 to 8"."""
    seeds = {curve.num_seeds for curve in curves}
    return str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
