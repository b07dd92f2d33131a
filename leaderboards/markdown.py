"""Leaderboard -> Markdown that reads well in a terminal too, with notes on the runs behind its numbers.

It holds no date and no machine's name, so that the same runs give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil

from leaderboards.boards import Board, Leaderboard
from leaderboards.cells import STATUSES, Cell
from leaderboards.challenges import find_challenges
from leaderboards.escaping import escape_code, escape_markdown
from leaderboards.notation import (
    NOTHING,
    pad,
    scale_title,
    section,
    shown_decimals,
    write_difference,
    write_headline,
    write_ours,
    write_ranks,
    write_signed,
    write_status,
)
from leaderboards.usable_runs import short_commit
from suite.profiles import Row
from suite.tables import ChangeFrom, Ranked, RankedWithin

COLUMNS_PER_TABLE = 3  # with ours, paper and diff for each, more would not fit a terminal's width
OWN_COLUMNS_PER_TABLE = 6  # of a table that the paper does not print

LEGEND = """\
Ours is the mean over n training seeds ± half its 95 % confidence interval, conditional on this test set and on this
subset of the training images: Student's t, for numbers made of several (changes, gains) Welch's; none from one seed,
nor for what no seed changes. ± has two significant digits and the mean as many decimals; without it they are the
paper's, or more where these would leave only zeros. Diff is ours minus the paper's, before rounding.
What is not complete is marked in the table: partial 2/3 (two of three runs are done), failed (a seed has no usable
result; the mean is of the others, and the CSV leaves the place empty), void (the same, for a result that a change of
the protocol has voided), missing (no seed is done). A dash: no number, or a place that this profile does not fill."""
RANKS = """\
#1-3: between the best and the third of {group}, where cells show the same metric. Of k competitors a cell stands
between 1 + those that are significantly better and k - those that are significantly worse (Welch's t for each pair at
5 %, by Holm's method over all pairs)."""
CHALLENGERS = """\
Models beside the papers', each trained by the recipe and on the data of the row's first model, in whose place it
stands; a recipe that was changed is named. A challenger is ranked by itself among those that this model competes with.
The difference is to each of the papers' models of the row on the same data: better or worse where p < 0.05 (Welch's t,
by Holm's method over a challenger's comparisons by one metric in a table)."""
COMPETITORS = {"in_columns": "a column", "in_rows": "a row", "in_table": "the whole table"}
VERDICTS = """\
Verdict on the paper's number: reproduced (the 90 % interval lies within one point of it), contradicted (it does not,
and the number would be improbable, p < 0.05 by Holm's method over the table, as the mean of the paper's own seeds, one
unless it says otherwise, if they scattered as ours do), else undecided."""


def render_markdown(leaderboard: Leaderboard) -> str:
    """The whole leaderboard for a reader: scale first, then the tables, what failed, and the footnotes."""
    suite = leaderboard.suite
    blocks = [
        f"# {suite.name}: ours beside {suite.paper}, {suite.item}",
        suite.question,
        _scale_note(leaderboard),
        f"Headline: {write_headline(leaderboard)}.",
        _counts(leaderboard),
        *(block for board in leaderboard.tables.values() for block in _table_section(board)),
        *_challengers(leaderboard),
        *_legend(leaderboard),
        *render_notes(leaderboard),
        *section("## Notes", suite.footnotes),
    ]
    return "\n\n".join(blocks) + "\n"


def _scale_note(leaderboard: Leaderboard) -> str:
    lines = [f"**{scale_title(leaderboard)}**"]
    if leaderboard.profile.scale_note:
        lines.append(f"{leaderboard.profile.scale_note.rstrip('.')}.")
    if leaderboard.profile.scale_note and not leaderboard.profile.other_dataset:
        lines.append(
            "The differences below say how far apart the two scales are, not how well the paper is reproduced."
        )
    return "\n".join(f"> {line}" for line in lines)


def _counts(leaderboard: Leaderboard) -> str:
    counts = ", ".join(f"{leaderboard.count(status)} {status}" for status in STATUSES)
    return f"{leaderboard.num_cells} cells: {counts}."


def _challengers(leaderboard: Leaderboard) -> list[str]:
    """Who stands beside the papers' models, and how they compare with each of them."""
    if not leaderboard.suite.challengers:
        return []
    header = ["table", "row", "challenger", "against", "difference", "p", "verdict"]
    lines = [
        [
            challenge.board.table.item,
            " / ".join(challenge.difference.row),
            challenge.column,
            challenge.against,
            write_difference(challenge.difference),
            NOTHING if challenge.p_value is None else f"{challenge.p_value:.2g}",
            challenge.verdict or NOTHING,
        ]
        for challenge in find_challenges(leaderboard)
    ]
    told = section("## Challengers", map(escape_markdown, leaderboard.suite.challengers.values()))
    return [*told, CHALLENGERS, *([pad(header, lines, right=[False] * 4 + [True] * 2 + [False])] if lines else [])]


def _legend(leaderboard: Leaderboard) -> list[str]:
    has_verdicts = any(
        cell.comparison.verdict for board in leaderboard.tables.values() for cell in board.cells.values()
    )
    return [LEGEND, *_rank_legend(leaderboard), *([VERDICTS] if has_verdicts else [])]


def _rank_legend(leaderboard: Leaderboard) -> list[str]:
    """Explain ranks, with the tables' names where they do not mean the same in all."""
    items: dict[str, list[str]] = {}
    for board in leaderboard.tables.values():
        if any(cell.comparison.ranks for cell in board.cells.values()):
            items.setdefault(RANKS.format(group=_competitors(board.table.ranked)), []).append(board.table.item)
    return [f"{'; '.join(of)}: {said}" if len(items) > 1 else said for said, of in items.items()]


def _competitors(ranked: Ranked) -> str:
    if isinstance(ranked, RankedWithin):
        return f"a column among the rows of one {' and '.join(ranked.row_keys)}"
    return COMPETITORS[ranked]


def _table_section(board: Board) -> list[str]:
    """The table in as many blocks as fit a page's width, and what it leaves out."""
    title = f"## {board.table.item}"
    if not board.cells:
        return [title, "This profile fills no place of this table."]
    blocks = [title, *(_table(board, columns) for columns in _split(board))]
    unfilled = [column for column in board.paper.columns if column not in board.columns]
    if unfilled:
        blocks.append(f"Columns that this profile does not fill: {', '.join(unfilled)}.")
    return blocks


def _split(board: Board) -> list[Sequence[str]]:
    """Evenly into as few blocks as fit: four columns make two and two. A change stays beside what has changed."""
    changes = {derived.column for derived in board.table.derived if isinstance(derived, ChangeFrom)}
    units: list[list[str]] = []
    for column in board.columns:
        if column in changes and units:
            units[-1].append(column)
        else:
            units.append([column])
    most = COLUMNS_PER_TABLE if board.has_paper else OWN_COLUMNS_PER_TABLE
    num_blocks = ceil(len(units) / max(1, most // max(map(len, units))))
    size = ceil(len(units) / num_blocks)
    return [[column for unit in units[i : i + size] for column in unit] for i in range(0, len(units), size)]


def _table(board: Board, columns: Sequence[str]) -> str:
    header = [*board.paper.row_keys]
    for column in columns:
        if column in board.table.challenger_columns:
            header.append(column)
            continue
        header += [f"{column}, ours", *(["paper", "diff"] if board.has_paper else [])]
        header += ["verdict"] if _is_judged(board, column) else []
    lines = [[*row, *(text for column in columns for text in _group(board, row, column))] for row in board.paper.rows]
    num_keys = len(board.paper.row_keys)
    return pad(header, lines, right=[i >= num_keys or _is_numeric(lines, i) for i in range(len(header))])


def _group(board: Board, row: tuple[str, ...], column: str) -> list[str]:
    """Ours, the paper's and the difference at one place of the table, and the verdict."""
    decimals = board.paper.decimals(column)
    cell = board.cells.get((row, column))
    texts = [NOTHING if cell is None else _ours(cell, decimals)]
    if board.has_paper and column not in board.table.challenger_columns:
        texts.append(board.paper.rows[row][column] or NOTHING)
        texts.append(NOTHING if cell is None else write_signed(cell.difference, decimals))
    if _is_judged(board, column):
        texts.append((cell and cell.comparison.verdict) or NOTHING)
    return texts


def _is_judged(board: Board, column: str) -> bool:
    return any(cell.comparison.verdict for cell in board.cells.values() if cell.column == column)


def _ours(cell: Cell, decimals: int) -> str:
    ours, status, ranks = write_ours(cell, decimals), write_status(cell), write_ranks(cell)
    if cell.status != "done":
        return f"{ours} **{status}** {ranks}".strip()
    last = _write_last(cell, decimals)
    return f"{ours or 'undefined'} ({status}{last}) {ranks}".strip()  # such as a relative gain over a baseline of 0


def _write_last(cell: Cell, decimals: int) -> str:
    """The accuracy after the last epoch, beside the best of all epochs."""
    last = cell.provenance.last_top1_percent
    if cell.metric != "best_top1_percent" or last is None:
        return ""
    return f", last epoch {last:.{shown_decimals(cell, decimals)}f}"


def _is_numeric(lines: list[list[str]], index: int) -> bool:
    return all(line[index].replace(".", "", 1).isdecimal() for line in lines)


# -- what was chosen, what failed, what waits, what is mixed


def render_notes(leaderboard: Leaderboard) -> list[str]:
    """The Markdown sections, without those that have nothing to say."""
    return [
        *section("## Chosen by search", _by_cell(leaderboard, _chosen)),
        *section("## Best of several evaluations", _by_cell(leaderboard, _best)),
        *section("## Failed", _by_cell(leaderboard, _failures)),
        *section("## Waiting", _waiting(leaderboard)),
        *section("## Mixed", [*_commits(leaderboard), *_by_cell(leaderboard, lambda cell: cell.provenance.notes)]),
    ]


def _by_cell(leaderboard: Leaderboard, tell: Callable[[Cell], Iterable[str]]) -> list[str]:
    """Each thing told once, with the row and the columns that it is true of: a run may fill several columns."""
    columns: dict[tuple[str, Row, str], list[str]] = {}
    for name, board in leaderboard.tables.items():
        for cell in board.cells.values():
            for what in tell(cell):
                columns.setdefault((name, cell.row, what), []).append(cell.column)
    return [
        f"{_place(leaderboard, table, row)}, {', '.join(names)}: {what}"
        for (table, row, what), names in columns.items()
    ]


def _place(leaderboard: Leaderboard, table: str, row: Row) -> str:
    """The row, after its table's item where there are several tables to be told apart."""
    item = f"{leaderboard.suite.table(table).item}, " if len(leaderboard.tables) > 1 else ""
    return item + " / ".join(filter(None, row))


def _chosen(cell: Cell) -> list[str]:
    search = cell.coverage.search
    if search is None or not cell.coverage.num_done:
        return []
    compared = f"{search.num_compared} candidates"
    if search.num_compared < search.num_candidates:
        compared = f"the {search.num_compared} of {search.num_candidates} candidates that could be compared"
    how = "of the other seeds" if search.on_other_seeds else "of this seed itself, which flatters it"
    return [f"{search.chosen}, chosen among {compared} by the test accuracy {how}"]


def _best(cell: Cell) -> list[str]:
    """Of how many the best accuracy of a training is the maximum: it flatters the more, the more there are."""
    if cell.metric != "best_top1_percent" or not cell.coverage.num_done:
        return []
    counts = " or ".join(
        str(count) if count else "of a number not recorded" for count in cell.provenance.num_evaluations
    )
    return [f"the maximum over a run's evaluations, {counts}"]


def _failures(cell: Cell) -> list[str]:
    said = []
    for failure in cell.coverage.failures:
        see = f"\n  See `{escape_code(str(failure.log_path))}`" if failure.log_path else ""
        said.append(f"seed {failure.seed}: {escape_markdown(' '.join(failure.reason.split()))}{see}")
    return said


def _commits(leaderboard: Leaderboard) -> list[str]:
    """Which versions of the code made the numbers, where these are several."""
    cells = [cell for board in leaderboard.tables.values() for cell in board.cells.values()]
    counts = Counter(short_commit(commit) for cell in cells for commit in cell.provenance.commits)
    if len(counts) < 2:
        return []
    told = ", ".join(
        f"{escape_markdown(commit)} ({count} cell{'s' if count > 1 else ''})" for commit, count in counts.items()
    )
    return [f"versions of the code, all valid under this protocol: {told}"]


def _waiting(leaderboard: Leaderboard) -> list[str]:
    """Grouped by what is waited for: a whole table may wait for one run."""
    rows: dict[str, dict[str, None]] = {}
    for name, board in leaderboard.tables.items():
        for cell in board.cells.values():
            for reason in cell.coverage.waiting:
                rows.setdefault(reason, {})[_place(leaderboard, name, cell.row)] = None
    return [f"{'; '.join(waiting)}: {escape_markdown(reason)}" for reason, waiting in rows.items()]
