"""Leaderboard -> notes on its numbers in plain text: what was chosen, what failed, what waits, what is mixed."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cell_values import competitors_of
from leaderboards.boards.cells import Cell
from leaderboards.boards.collect import SeedFailure
from leaderboards.boards.usable_runs import short_commit
from leaderboards.text.frozen_plan import describe_plan
from leaderboards.text.labels import list_columns
from suite.cost.costs import write_hours
from suite.spec.profile import Row
from suite.spec.tuning import tunable


@dataclass(frozen=True)
class Note:
    """``place`` names rows and columns, "" for the whole leaderboard; ``see`` is the file to open next, or ""."""

    place: str
    text: str
    see: str = ""


def find_notes(leaderboard: Leaderboard) -> dict[str, list[Note]]:
    """The notes by the title of their section; empty sections are left out."""
    mixed = _by_cell(leaderboard, lambda cell: [(note, "") for note in cell.provenance.notes])
    found = {
        "Frozen plan": [Note("", text) for text in describe_plan(leaderboard)],
        "Chosen by search": _by_cell(leaderboard, _chosen),
        "Settings tried": _tried(leaderboard),
        "Best of several evaluations": _by_cell(leaderboard, _best),
        "Failed": _by_cell(leaderboard, lambda cell: map(_failed, cell.coverage.failures)),
        "Waiting": _waiting(leaderboard),
        "Seeds planned": _planned(leaderboard),
        "Mixed": [*_commits(leaderboard), *_draws(leaderboard), *mixed],
    }
    return {title: notes for title, notes in found.items() if notes}


def _by_cell(leaderboard: Leaderboard, find: Callable[[Cell], Iterable[tuple[str, str]]]) -> list[Note]:
    """Each note once, with the row and the columns that it is about: a run may fill several columns."""
    columns: dict[tuple[str, Row, tuple[str, str]], list[str]] = {}
    for board, cell in leaderboard.cells:
        for what in find(cell):
            columns.setdefault((board.table.name, cell.row, what), []).append(cell.column)
    return [
        Note(f"{_place(leaderboard, table, row)}, {list_columns(leaderboard.tables[table], names)}", *what)
        for (table, row, what), names in columns.items()
    ]


def _place(leaderboard: Leaderboard, table: str, row: Row) -> str:
    """The row; where there are several tables, after its table's item."""
    item = f"{leaderboard.suite.table(table).item}, " if len(leaderboard.tables) > 1 else ""
    return item + " / ".join(filter(None, row))


def _chosen(cell: Cell) -> list[tuple[str, str]]:
    search = cell.coverage.search
    if search is None or not cell.coverage.num_done:
        return []
    compared = f"{search.num_compared} candidates"
    if search.num_compared < search.num_candidates:
        compared = f"the {search.num_compared} of {search.num_candidates} candidates that could be compared"
    how = "of the other seeds" if search.on_other_seeds else "of this seed itself, which flatters it"
    return [(f"{search.chosen}, chosen among {compared} by the test accuracy {how}", "")]


def _tried(leaderboard: Leaderboard) -> list[Note]:
    """How many settings were tried for each configuration, where any was searched before."""
    rows: dict[int, dict[str, None]] = {}
    entries = [
        (_place(leaderboard, leaderboard.suite.table(e.table).name, e.row), e) for e in leaderboard.profile.entries
    ]
    for place, entry in entries:
        rows.setdefault(entry.num_tries, {})[place] = None
    if set(rows) <= {1}:
        return []
    texts = {n: f"{n} on held-out training images, by seeds of their own" if n > 1 else "none" for n in rows}
    notes = [Note("each configuration" if len(rows) == 1 else "; ".join(of), texts[n]) for n, of in rows.items()]
    if leaderboard.suite.tuning is not None:
        unit = "GPU" if leaderboard.profile.device == "gpu" else "core"
        notes.append(Note("", f"all tries together took {write_hours(leaderboard.profile.tuning_hours)} {unit}-hours"))
        for place, entry in entries:
            tuned = tunable([entry.experiment])
            if names := ", ".join(one.recipe.name for one in tuned):
                told = "is" if entry.experiment in tuned else "is not tuned by itself, and starts from runs"
                notes.append(Note(place, f"{entry.experiment.model} {told} trained by {names}"))
    return list(dict.fromkeys(notes))


def _best(cell: Cell) -> list[tuple[str, str]]:
    """The number of evaluations that a training's best accuracy is the maximum of: the more, the more it flatters."""
    if cell.last_top1_percent is None or not cell.coverage.num_done:
        return []
    counts = " or ".join(
        str(count) if count else "of a number not recorded" for count in cell.provenance.num_evaluations
    )
    return [(f"the maximum over a run's evaluations, {counts}", "")]


def _failed(failure: SeedFailure) -> tuple[str, str]:
    return f"seed {failure.seed}: {' '.join(failure.reason.split())}", str(failure.log_path)


def _commits(leaderboard: Leaderboard) -> list[Note]:
    """The versions of the code that made the numbers, where there are several."""
    counts = Counter(short_commit(commit) for _, cell in leaderboard.cells for commit in cell.provenance.commits)
    if len(counts) < 2:
        return []
    names = ", ".join(f"{commit} ({count} cell{'s' if count > 1 else ''})" for commit, count in counts.items())
    return [Note("", f"versions of the code, all valid under this protocol: {names}")]


def _draws(leaderboard: Leaderboard) -> list[Note]:
    """The groups of competitors of which some draw their images by seed, and others do not."""
    draws: dict[tuple[str, Row], set[bool]] = {}
    for board, cell in leaderboard.cells:
        group = draws.setdefault((board.table.name, competitors_of(board.table, cell)), set())
        group |= {experiment.images_drawn_by_seed for experiment in cell.provenance.experiments}
    text = "some draw their images by seed, others have the same in all seeds: an interval of both holds for neither"
    return [Note(_place(leaderboard, *group), text) for group, found in draws.items() if len(found) > 1]


def _planned(leaderboard: Leaderboard) -> list[Note]:
    """Why cells are partial, where others have more seeds: these may be runs of another suite, or of a joined store."""
    full = next((one for one in leaderboard.cells if one[1].status == "done" and one[1].provenance.experiment), None)
    if leaderboard.plan or full is None or not leaderboard.count("partial"):
        return []
    board, cell = full
    text = (
        f"{cell.coverage.num_planned} of every cell, as many as the fullest one has. Its runs may be another suite's, "
        "or of a store that was joined to this one: then other cells are partial. --seeds says how many to plan"
    )
    return [Note(f"{' / '.join(filter(None, cell.row))}, {list_columns(board, [cell.column])}", text)]


def _waiting(leaderboard: Leaderboard) -> list[Note]:
    """Grouped by what is waited for: a whole table may wait for one run."""
    rows: dict[str, dict[str, None]] = {}
    for board, cell in leaderboard.cells:
        for reason in cell.coverage.waiting:
            rows.setdefault(reason, {})[_place(leaderboard, board.table.name, cell.row)] = None
    return [Note("; ".join(waiting), reason) for reason, waiting in rows.items()]
