"""Collected runs -> the cells of a table: measured ones, those derived from them, and their ranks.

The mean of a derived cell is derived from the means, as the paper does. Its interval is that of the values derived seed
by seed, which needs the same seeds on all sides, moved from their mean to the one shown: for a ratio the two differ a
little.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from leaderboards.cells import Cell, CellStatus, Coverage, Estimate, Provenance, Search
from leaderboards.collect import Collection, in_points, is_accuracy
from leaderboards.estimates import estimate, p_value_below, shared_ranks
from leaderboards.paper_tables import PaperTable
from leaderboards.usable_runs import UsableRuns, choose, usable_runs
from suite.profiles import Entry, Row
from suite.tables import ChangeFrom, Derived, RankedWithin, RelativeGain, RelativeTo, Table


def measured_cells(
    entries: Sequence[Entry], paper: PaperTable, collection: Collection, is_paper: bool
) -> dict[tuple[Row, str], Cell]:
    """Make the cells of one table, keyed (row, column); at the paper's own scale accuracies are tested against it."""
    cells = {}
    for entry in entries:
        candidates = [usable_runs(candidate, collection) for candidate in entry.candidates]
        shown, search = choose(candidates)
        coverage = _cover(candidates, shown, search, collection.num_planned)
        provenance = _trace(candidates, shown)
        for column, metric in entry.columns.items():
            covered = _leave_out_void(coverage, metric, shown)
            found = estimate({seed: values[metric] for seed, values in shown.values.items() if metric in values})
            printed = paper.value(entry.row, column)
            if is_paper and printed is not None and is_accuracy(metric) and covered.status in ("done", "partial"):
                found = replace(found, p_value=p_value_below(list(found.values.values()), printed))
            cells[entry.row, column] = Cell(entry.row, column, metric, found, printed, covered, provenance)
    return cells


def _cover(candidates: Sequence[UsableRuns], shown: UsableRuns, search: Search | None, num_planned: int) -> Coverage:
    """Say how far all candidates have come: the same for every cell of the entry, but for void metrics."""
    return Coverage(
        status=_status(candidates, shown, num_planned),
        num_done=len(shown.values),
        num_planned=num_planned,
        failures=tuple(failure for candidate in candidates for failure in candidate.failures),
        waiting=tuple(dict.fromkeys(reason for candidate in candidates for reason in candidate.waiting)),
        search=search,
    )


def _trace(candidates: Sequence[UsableRuns], shown: UsableRuns) -> Provenance:
    """Name the runs behind every cell of an entry."""
    speeds = [found["images_per_s"] for found in shown.values.values()]
    return Provenance(
        experiment=shown.experiment,
        notes=shown.notes,
        device_hours=sum(hours for candidate in candidates for hours in candidate.runs.device_hours.values()),
        images_per_s=statistics.fmean(speeds) if speeds else None,
        commits=tuple(dict.fromkeys(shown.runs.commits[seed] for seed in shown.values)),
        num_evaluations=tuple(sorted({int(found["num_evaluations"]) for found in shown.values.values()})),
    )


def _leave_out_void(coverage: Coverage, metric: str, shown: UsableRuns) -> Coverage:
    """Count as failures the runs shown in which this metric no longer holds, though others do."""
    void = [shown.runs.void_metrics[seed] for seed in shown.values]
    failures = tuple(found[metric] for found in void if metric in found)
    if not failures:
        return coverage
    return replace(
        coverage,
        status="failed" if coverage.status == "failed" else "void",
        num_done=coverage.num_done - len(failures),
        failures=(*coverage.failures, *failures),
    )


def _status(candidates: Sequence[UsableRuns], shown: UsableRuns, num_planned: int) -> CellStatus:
    """A candidate that fails beside the shown one leaves the search incomplete, not the shown number unusable."""
    unusable = shown.failures if shown.values else [f for candidate in candidates for f in candidate.failures]
    if unusable:
        return "void" if all(failure.state == "void" for failure in unusable) else "failed"
    if not shown.values:
        return "missing"
    return "done" if all(len(candidate.values) >= num_planned for candidate in candidates) else "partial"


# -- cells that the paper derives from others

Cells = Mapping[tuple[Row, str], Cell]
Formula = Callable[[Sequence[float]], float | None]


def add_derived(
    table: Table, cells: Cells, entries: Sequence[Entry], paper: PaperTable, collection: Collection
) -> dict[tuple[Row, str], Cell]:
    """The cells and, where all that they need has a cell, those of the table's derived columns, in their order."""
    found = dict(cells)
    for derived in table.derived:
        measured = _measure(derived, entries, paper, collection) if isinstance(derived, RelativeTo) else {}
        for row in paper.rows:
            sources, formula = _sources(derived, row, found, measured)
            known = [source for source in sources if source is not None]
            if known and len(known) == len(sources):
                cell = combine(row, derived.column, known, formula, paper.value(row, derived.column))
                found[row, derived.column] = replace(cell, is_change=isinstance(derived, ChangeFrom))
    return found


def _sources(
    derived: Derived, row: Row, found: Cells, measured: Mapping[Row, Cell]
) -> tuple[list[Cell | None], Formula]:
    """Of which cells, and how, a derived cell is made; of none where it has no place, as in a change's baseline row."""
    if isinstance(derived, RelativeGain):
        return [found.get((row, derived.better)), found.get((row, derived.baseline))], _gain
    if isinstance(derived, RelativeTo):
        return [measured.get(row), measured.get(derived.baseline)], _ratio
    if isinstance(derived, ChangeFrom):
        rows = [] if row == derived.baseline else [row, derived.baseline]
        return [found.get((of, derived.of)) for of in rows], _change
    return [found.get((row, column)) for column in derived.columns], _mean


def combine(row: Row, column: str, sources: Sequence[Cell], formula: Formula, paper: float | None) -> Cell:
    """Derive a cell from others. It lacks what the worst of them lacks; their failures are told there."""
    metrics = {source.metric for source in sources}
    coverage = Coverage(
        status=_worst(sources),
        num_done=min(source.coverage.num_done for source in sources),
        num_planned=sources[0].coverage.num_planned,
    )
    return Cell(
        row=row,
        column=column,
        metric=metrics.pop() if formula is _mean and len(metrics) == 1 else "",
        estimate=_derive([source.estimate for source in sources], formula),
        paper=paper,
        coverage=coverage,
    )


def _derive(sources: Sequence[Estimate], formula: Formula) -> Estimate:
    """Apply a formula to the means, and seed by seed to the values, whose interval is moved to that mean."""
    means = [source.mean for source in sources if source.mean is not None]
    mean = formula(means) if len(means) == len(sources) else None
    seeds = [seed for seed in sources[0].values if all(seed in source.values for source in sources)]
    by_seed = {seed: formula([source.values[seed] for source in sources]) for seed in seeds}
    values = {seed: value for seed, value in by_seed.items() if value is not None}
    if any(len(source.values) != len(values) for source in sources):
        return Estimate(values, mean)
    found = estimate(values)
    if mean is None or found.mean is None or found.interval is None:
        return replace(found, mean=mean)
    low, high = (mean + (side - found.mean) for side in (found.interval.low, found.interval.high))
    return Estimate(values, mean, replace(found.interval, low=low, high=high))


def difference_of(better: Cell, baseline: Cell) -> Cell:
    """By how much one cell exceeds another, in percentage points where these are accuracies; so for the paper's."""
    scale = in_points(better.metric)
    have_paper = better.paper is not None and baseline.paper is not None
    paper = scale * ((better.paper or 0.0) - (baseline.paper or 0.0)) if have_paper else None
    cell = combine(better.row, better.column, [better, baseline], lambda pair: scale * (pair[0] - pair[1]), paper)
    return replace(cell, metric=better.metric)


def relative_gain(better: float, baseline: float) -> float | None:
    """``100 * (better - baseline) / baseline`` in percent; None where the baseline is 0."""
    return 100 * (better - baseline) / baseline if baseline else None


def _gain(pair: Sequence[float]) -> float | None:
    return relative_gain(*pair)


def _change(pair: Sequence[float]) -> float | None:
    return pair[0] - pair[1]


def _ratio(pair: Sequence[float]) -> float | None:
    return pair[0] / pair[1] if pair[1] else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values)


def _worst(sources: Sequence[Cell]) -> CellStatus:
    statuses = {source.status for source in sources}
    order: tuple[CellStatus, ...] = ("failed", "void", "missing", "partial")
    return next((status for status in order if status in statuses), "done")


def _measure(
    derived: RelativeTo, entries: Sequence[Entry], paper: PaperTable, collection: Collection
) -> dict[Row, Cell]:
    """The metric of each row's runs, though no column of the table may show it."""
    asked = [entry.model_copy(update={"columns": {derived.column: derived.metric}}) for entry in entries]
    cells = measured_cells(asked, paper, collection, is_paper=False)
    return {row: cell for (row, _), cell in cells.items()}


# -- ranks


def add_ranks(table: Table, cells: Mapping[tuple[Row, str], Cell]) -> dict[tuple[Row, str], Cell]:
    """Rank the accuracies that compete with each other and have an interval.

    A cell without an interval (one seed), one that failed or is void, and one without competitor has no rank.
    """
    ranked = dict(cells)
    groups: dict[tuple[str, ...], list[tuple[Row, str]]] = {}
    for key, cell in cells.items():
        if table.ranked != "none" and _competes(cell):
            groups.setdefault((cell.metric, *_group(table, cell)), []).append(key)
    for keys in groups.values():
        if len(keys) > 1:
            for key, rank in zip(keys, shared_ranks([_reach(cells[key]) for key in keys]), strict=True):
                found = replace(cells[key].estimate, rank=rank)
                ranked[key] = replace(cells[key], estimate=found)
    return ranked


def _group(table: Table, cell: Cell) -> tuple[str, ...]:
    """Name the group that a cell competes in, beside its metric."""
    if isinstance(table.ranked, RankedWithin):
        row = dict(zip(table.row_keys, cell.row, strict=True))
        return (cell.column, *(row[key] for key in table.ranked.row_keys))
    if table.ranked == "in_rows":
        return cell.row
    return (cell.column,) if table.ranked == "in_columns" else ()


def _competes(cell: Cell) -> bool:
    return cell.is_usable and cell.interval is not None and is_accuracy(cell.metric)


def _reach(cell: Cell) -> tuple[float, float]:
    assert cell.interval is not None
    return cell.interval.low, cell.interval.high
