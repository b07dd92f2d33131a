"""Collected runs -> the cells of a table: measured ones, those derived from them, and how they compare.

The mean of a derived cell is derived from the means, as the paper does; its interval follows from the seeds of those
cells, as ``leaderboards.significance.estimates`` says.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from leaderboards.boards.cells import Cell, CellStatus, Coverage, Provenance
from leaderboards.boards.collect import Collection, SeedRuns, pick
from leaderboards.boards.layout import PaperTable
from leaderboards.boards.metrics import PRUNED_HEADS, in_points, is_accuracy
from leaderboards.boards.usable_runs import Candidate, choose, describe_origins
from leaderboards.significance.estimates import Estimate, Formula, derive, rank_intervals, single
from leaderboards.significance.verdicts import Printed, judge_table
from suite.spec.profile import Entry, Row
from suite.spec.suite import ChangeFrom, Derived, Gain, RankedWithin, RelativeGain, RelativeTo, Table

Cells = Mapping[tuple[Row, str], Cell]


def measured_cells(entries: Sequence[Entry], paper: PaperTable, collection: Collection) -> dict[tuple[Row, str], Cell]:
    """The measured cells of one table, keyed (row, column)."""
    cells = {}
    for entry in entries:
        candidates = [(one, collection.runs[one.configuration_id]) for one in entry.candidates]
        shown, shown_runs, search = choose(candidates)
        coverage = Coverage(  # the same for every cell of the entry
            status=_status(candidates, shown, shown_runs, len(collection.seeds)),
            num_done=len(shown_runs.values),
            num_planned=len(collection.seeds),
            failures=tuple(failure for _, of in candidates for failure in of.failures),
            waiting=tuple(dict.fromkeys(reason for _, of in candidates for reason in of.waiting)),
            search=search,
        )
        for column, metric in entry.columns.items():
            runs = pick({seed: shown_runs for seed, values in shown_runs.values.items() if metric in values})
            covered = coverage
            if len(runs.values) not in (0, coverage.num_done):  # 0: this model has no such number, as a gate
                covered = replace(coverage, status=_worst([coverage.status, "partial"]), num_done=len(runs.values))
            printed = paper.value(entry.row, column)
            found = _measured(runs, metric)
            provenance = _trace(candidates, shown, runs)
            cells[entry.row, column] = Cell(entry.row, column, metric, found, printed, covered, provenance)
    return cells


def _measured(runs: SeedRuns, metric: str) -> Estimate:
    """One metric by seed. Accuracies have steps of one test image, counted heads of one head."""
    values = {seed: values[metric] for seed, values in runs.values.items()}
    step = 1.0 if metric in PRUNED_HEADS else 0.0
    if is_accuracy(metric) and values:
        num_images = min(found["num_test_images"] for found in runs.values.values())
        step = 100 / in_points(metric) / max(1.0, num_images)
    return single(values, step / math.sqrt(12))


def _trace(candidates: Sequence[Candidate], shown: Sequence[Candidate], runs: SeedRuns) -> Provenance:
    """The origin of a cell's number: ``runs`` are those of ``shown`` that have its metric."""
    speeds = [found["images_per_s"] for found in runs.values.values()]
    accuracies = [found["top1_percent"] for found in runs.values.values()]
    return Provenance(
        experiments=tuple(experiment for experiment, _ in shown),
        runs=runs.directories,
        notes=describe_origins(runs),
        device_hours=sum(hours for _, of in candidates for hours in of.device_hours.values()),
        images_per_s=statistics.fmean(speeds) if speeds else None,
        commits=tuple(dict.fromkeys(runs.commits.values())),
        num_evaluations=tuple(sorted({int(found["num_evaluations"]) for found in runs.values.values()})),
        last_top1_percent=statistics.fmean(accuracies) if accuracies else None,
    )


def _status(
    candidates: Sequence[Candidate], shown: Sequence[Candidate], runs: SeedRuns, num_planned: int
) -> CellStatus:
    """A candidate that fails beside the shown one leaves the search incomplete, not the shown number unusable."""
    unusable = [failure for _, of in (shown if runs.values else candidates) for failure in of.failures]
    if unusable:
        return "void" if all(failure.state == "void" for failure in unusable) else "failed"
    if not runs.values:
        return "missing"
    return "done" if all(len(of.values) >= num_planned for _, of in candidates) else "partial"


def add_derived(
    table: Table, cells: Cells, entries: Sequence[Entry], paper: PaperTable, collection: Collection
) -> dict[tuple[Row, str], Cell]:
    """Add the table's derived columns, in their order, where all of their sources have a cell.

    Args:
        table: the table that names the columns.
        cells: the measured cells, keyed (row, column).
        entries: the entries of the table.
        paper: the layout and the printed numbers.
        collection: the runs, for metrics that no column shows.
    """
    found = dict(cells)
    for derived in table.derived:
        measured: dict[Row, Cell] = {}
        if isinstance(derived, RelativeTo):  # the metric of each row's runs, whether a column shows it or not
            asked = [e.model_copy(columns={derived.column: derived.metric}) for e in entries if not e.beside]
            measured = {row: cell for (row, _), cell in measured_cells(asked, paper, collection).items()}
        for row in paper.rows:
            sources, formula = _sources(derived, row, found, measured)
            known = [source for source in sources if source is not None]
            if known and len(known) == len(sources):
                cell = combine(row, derived.column, known, formula, paper.value(row, derived.column))
                found[row, derived.column] = replace(cell, is_change=isinstance(derived, ChangeFrom | Gain))
    return found


def _sources(
    derived: Derived, row: Row, found: Cells, measured: Mapping[Row, Cell]
) -> tuple[list[Cell | None], Formula]:
    """The source cells of a derived cell and its formula; no cells where it has no place, as in a baseline's row."""
    if isinstance(derived, RelativeGain | Gain):
        pair = [found.get((row, derived.better)), found.get((row, derived.baseline))]
        return pair, _gain if isinstance(derived, RelativeGain) else _change
    if isinstance(derived, RelativeTo):
        return [measured.get(row), measured.get(derived.baseline)], _ratio
    if isinstance(derived, ChangeFrom):
        rows = [] if row == derived.baseline else [row, derived.baseline]
        return [found.get((of, derived.of)) for of in rows], _change
    return [found.get((row, column)) for column in derived.columns], statistics.fmean


def combine(row: Row, column: str, sources: Sequence[Cell], formula: Formula, paper: float | None) -> Cell:
    """Derive a cell from others. Its status is the worst of its sources'; their failures are listed with them.

    Args:
        row, column: the place of the new cell.
        sources: source cells, at least one.
        formula: makes the number of the sources' means.
        paper: the number that the paper prints there.
    """
    metrics = {source.metric for source in sources}
    coverage = Coverage(
        status=_worst([source.status for source in sources]),
        num_done=min(source.coverage.num_done for source in sources),
        num_planned=sources[0].coverage.num_planned,
    )
    return Cell(
        row=row,
        column=column,
        metric=metrics.pop() if formula is statistics.fmean and len(metrics) == 1 else "",
        estimate=derive([source.estimate for source in sources], formula),
        paper=paper,
        coverage=coverage,
    )


def difference_of(better: Cell, baseline: Cell) -> Cell:
    """By how much one cell exceeds another, ours and the paper's; for accuracies in percentage points."""
    scale = in_points(better.metric)
    have_paper = better.paper is not None and baseline.paper is not None
    paper = scale * ((better.paper or 0.0) - (baseline.paper or 0.0)) if have_paper else None
    cell = combine(better.row, better.column, [better, baseline], lambda pair: scale * (pair[0] - pair[1]), paper)
    return replace(cell, metric=better.metric)


def _gain(pair: Sequence[float]) -> float | None:
    """The relative gain in percent; None over a baseline of 0."""
    return 100 * (pair[0] - pair[1]) / pair[1] if pair[1] else None


def _change(pair: Sequence[float]) -> float | None:
    return pair[0] - pair[1]


def _ratio(pair: Sequence[float]) -> float | None:
    return pair[0] / pair[1] if pair[1] else None


def _worst(statuses: Sequence[CellStatus]) -> CellStatus:
    order: tuple[CellStatus, ...] = ("failed", "void", "missing", "partial")
    return next((status for status in order if status in statuses), "done")


def add_ranks(table: Table, cells: Cells, entries: Iterable[Entry]) -> dict[tuple[Row, str], Cell]:
    """Rank the accuracies that compete with each other.

    Without a rank: cells of one seed, failed and void ones, and those without competitor. Each custom model is ranked
    by itself among the competitors of the cell in whose place it stands, and so changes no other's rank.
    """
    ranked = dict(cells)
    if table.ranked == "none":
        return ranked
    places = {(e.row, column): (e.row, of) for e in entries for column, of in e.beside.items()}
    groups: dict[tuple[str, ...], list[tuple[Row, str]]] = {}
    for key, cell in cells.items():
        if key not in places and _competes(cell):
            groups.setdefault((cell.metric, *competitors_of(table, cell)), []).append(key)
    for keys in groups.values():
        ranked |= _rank(keys, cells)
    for key, place in places.items():
        if _competes(cells[key]):
            others = groups.get((cells[place].metric, *competitors_of(table, cells[place])), [])
            own = _rank([*others, key], cells)[key]
            ranked[key] = replace(own, comparison=replace(own.comparison, is_aside=True))
    return ranked


def _rank(keys: Sequence[tuple[Row, str]], cells: Cells) -> dict[tuple[Row, str], Cell]:
    """The cells of one group with their ranks; a single cell has none."""
    if len(keys) < 2:
        return {key: cells[key] for key in keys}
    ranks = rank_intervals([cells[key].estimate for key in keys])
    found = zip(keys, ranks, strict=True)
    return {key: replace(cells[key], comparison=replace(cells[key].comparison, ranks=of)) for key, of in found}


def competitors_of(table: Table, cell: Cell) -> tuple[str, ...]:
    """The group in which a cell competes with cells of its metric; one for a table in which nothing is ranked."""
    if isinstance(table.ranked, RankedWithin):
        row = dict(zip(table.row_keys, cell.row, strict=True))
        return (cell.column, *(row[key] for key in table.ranked.row_keys))
    if table.ranked == "in_rows":
        return cell.row
    return (cell.column,) if table.ranked == "in_columns" else ()


def _competes(cell: Cell) -> bool:
    return cell.is_usable and cell.interval is not None and is_accuracy(cell.metric)


def add_verdicts(table: Table, cells: Cells, paper: PaperTable) -> dict[tuple[Row, str], Cell]:
    """Judge the accuracies of a table at the paper's own scale against those that the paper prints."""
    judged = dict(cells)
    printed = {
        key: Printed(
            cell.paper, 0.5 * 10.0 ** -paper.decimals(cell.column), table.seeds_of_paper, 1 / in_points(cell.metric)
        )
        for key, cell in cells.items()
        if cell.paper is not None and cell.is_usable and cell.provenance.experiment and is_accuracy(cell.metric)
    }
    verdicts = judge_table([(cells[key].estimate, number) for key, number in printed.items()])
    for key, (verdict, p_value) in zip(printed, verdicts, strict=True):
        comparison = replace(cells[key].comparison, verdict=verdict, p_value=p_value)
        judged[key] = replace(cells[key], comparison=comparison)
    return judged
