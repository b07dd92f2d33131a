"""What a leaderboard says of the runs behind its numbers: what was chosen, what failed, what waits, what is mixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from leaderboards.aggregate import SuiteBoard
from leaderboards.cells import Cell
from leaderboards.usable_runs import short_commit
from suite.profiles import Row


def render_notes(boards: SuiteBoard) -> list[str]:
    """The Markdown sections, without those that have nothing to say."""
    return [
        *section("## Chosen by search", _by_cell(boards, _chosen)),
        *section("## Best of several evaluations", _by_cell(boards, _best)),
        *section("## Failed", _by_cell(boards, _failures)),
        *section("## Waiting", _waiting(boards)),
        *section("## Mixed", [*_commits(boards), *_by_cell(boards, lambda cell: cell.notes)]),
    ]


def section(title: str, items: Iterable[str]) -> list[str]:
    text = "\n".join(f"- {item}" for item in items)
    return [f"{title}\n\n{text}"] if text else []


def _by_cell(boards: SuiteBoard, tell: Callable[[Cell], Iterable[str]]) -> list[str]:
    """Each thing told once, with the row and the columns that it is true of: a run may fill several columns."""
    columns: dict[tuple[str, Row, str], list[str]] = {}
    for name, board in boards.tables.items():
        for cell in board.cells.values():
            for what in tell(cell):
                columns.setdefault((name, cell.row, what), []).append(cell.column)
    return [
        f"{_place(boards, table, row)}, {', '.join(names)}: {what}" for (table, row, what), names in columns.items()
    ]


def _place(boards: SuiteBoard, table: str, row: Row) -> str:
    """The row, after its table's item where there are several tables to be told apart."""
    item = f"{boards.suite.table(table).item}, " if len(boards.tables) > 1 else ""
    return item + " / ".join(filter(None, row))


def _chosen(cell: Cell) -> list[str]:
    search = cell.search
    if search is None or not cell.num_done:
        return []
    compared = f"{search.num_compared} candidates"
    if search.num_compared < search.num_candidates:
        compared = f"the {search.num_compared} of {search.num_candidates} candidates that have a result"
    return [f"{search.chosen or 'the first'}, chosen among {compared} by test accuracy"]


def _best(cell: Cell) -> list[str]:
    """Of how many the best accuracy of a training is the maximum: it flatters the more, the more there are."""
    if cell.metric != "best_top1_percent" or not cell.num_done:
        return []
    counts = " or ".join(str(count) if count else "of a number not recorded" for count in cell.num_evaluations)
    return [f"the maximum over a run's evaluations, {counts}"]


def _failures(cell: Cell) -> list[str]:
    said = []
    for failure in cell.failures:
        see = f"\n  See `{failure.log_path}`" if failure.log_path else ""
        said.append(f"seed {failure.seed}: {' '.join(failure.reason.split())}{see}")
    return said


def _commits(boards: SuiteBoard) -> list[str]:
    """Which versions of the code made the numbers, where these are several."""
    cells = [cell for board in boards.tables.values() for cell in board.cells.values()]
    counts = Counter(short_commit(commit) for cell in cells for commit in cell.commits)
    if len(counts) < 2:
        return []
    told = ", ".join(f"{commit} ({count} cell{'s' if count > 1 else ''})" for commit, count in counts.items())
    return [f"versions of the code, all valid under this protocol: {told}"]


def _waiting(boards: SuiteBoard) -> list[str]:
    """Grouped by what is waited for: a whole table may wait for one run."""
    rows: dict[str, dict[str, None]] = {}
    for name, board in boards.tables.items():
        for cell in board.cells.values():
            for reason in cell.waiting:
                rows.setdefault(reason, {})[_place(boards, name, cell.row)] = None
    return [f"{'; '.join(waiting)}: {reason}" for reason, waiting in rows.items()]
