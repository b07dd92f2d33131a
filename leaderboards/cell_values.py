"""Collected runs -> the cells of a table: measured ones, those derived from them, and their ranks.

The mean of a derived cell is derived from the means, as the paper does. Its interval is that of the values derived seed
by seed, which needs the same seeds on all sides, moved from their mean to the one shown: for a ratio the two differ a
little.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leaderboards.cells import Cell, CellStatus, Search
from leaderboards.collect import Collection, in_points, is_accuracy
from leaderboards.estimates import interval, p_value_below, shared_ranks
from leaderboards.paper_tables import PaperTable
from leaderboards.usable_runs import UsableRuns, choose, usable_runs
from suite.tables import ChangeFrom, Derived, Entry, RankedWithin, RelativeGain, RelativeTo, Row, Table


def measured_cells(
    entries: Sequence[Entry], paper: PaperTable, collection: Collection, is_paper: bool
) -> dict[tuple[Row, str], Cell]:
    """The cells of one table, keyed (row, column); at the paper's own scale accuracies are tested against it."""
    cells = {}
    for entry in entries:
        candidates = [usable_runs(candidate, collection) for candidate in entry.candidates]
        shown, search = choose(candidates)
        known_of_all = _known_of_all(candidates, shown, search, collection.num_planned)
        for column, metric in entry.columns.items():
            values = {seed: found[metric] for seed, found in shown.values.items() if metric in found}
            known = known_of_all | _void_of(metric, shown, known_of_all)
            printed = paper.value(entry.row, column)
            tested = is_paper and printed is not None and is_accuracy(metric) and known["status"] in ("done", "partial")
            cells[entry.row, column] = Cell(
                row=entry.row,
                column=column,
                metric=metric,
                values=values,
                paper=printed,
                p_value=p_value_below(list(values.values()), printed) if tested and printed is not None else None,
                **summary(values),
                **known,
            )
    return cells


def summary(values: dict[int, float]) -> dict[str, Any]:
    """A cell's mean and interval."""
    found = interval(list(values.values()))
    return {
        "mean": statistics.fmean(values.values()) if values else None,
        "sd": found and found.sd,
        "low": found and found.low,
        "high": found and found.high,
        "interval_method": found.method if found else "",
    }


def _known_of_all(
    candidates: Sequence[UsableRuns], shown: UsableRuns, search: Search | None, num_planned: int
) -> dict[str, Any]:
    """What all cells of an entry share: they show the same runs."""
    speeds = [found["images_per_s"] for found in shown.values.values()]
    return {
        "status": _status(candidates, shown, num_planned),
        "num_done": len(shown.values),
        "num_planned": num_planned,
        "failures": tuple(failure for candidate in candidates for failure in candidate.failures),
        "waiting": tuple(dict.fromkeys(reason for candidate in candidates for reason in candidate.waiting)),
        "notes": shown.notes,
        "experiment": shown.experiment,
        "search": search,
        "device_hours": sum(hours for candidate in candidates for hours in candidate.runs.device_hours.values()),
        "images_per_s": statistics.fmean(speeds) if speeds else None,
        "num_evaluations": tuple(sorted({int(found["num_evaluations"]) for found in shown.values.values()})),
        "commits": tuple(dict.fromkeys(shown.runs.commits[seed] for seed in shown.values)),
    }


def _void_of(metric: str, shown: UsableRuns, known: dict[str, Any]) -> dict[str, Any]:
    """What is otherwise for a metric that no longer holds of some of the runs shown."""
    void = {seed: shown.runs.void_metrics[seed] for seed in shown.values}
    failures = tuple(found[metric] for found in void.values() if metric in found)
    if not failures:
        return {}
    status = known["status"] if known["status"] == "failed" else "void"
    num_done = known["num_done"] - len(failures)
    return {"status": status, "num_done": num_done, "failures": (*known["failures"], *failures)}


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
    """A cell derived from others. It lacks what the worst of them lacks; their failures are told there."""
    seeds = [seed for seed in sources[0].values if all(seed in source.values for source in sources)]
    by_seed = {seed: formula([source.values[seed] for source in sources]) for seed in seeds}
    values = {seed: value for seed, value in by_seed.items() if value is not None}
    matched = all(len(source.values) == len(values) for source in sources)
    means = [source.mean for source in sources if source.mean is not None]
    metrics = {source.metric for source in sources}
    mean = formula(means) if len(means) == len(sources) else None
    return Cell(
        row=row,
        column=column,
        values=values,
        **_about(mean, summary(values if matched else {})),
        paper=paper,
        status=_worst(sources),
        num_done=min(source.num_done for source in sources),
        num_planned=sources[0].num_planned,
        metric=metrics.pop() if formula is _mean and len(metrics) == 1 else "",
    )


def _about(mean: float | None, found: dict[str, Any]) -> dict[str, Any]:
    """The summary of the values by seed with the mean that is shown, and the interval about that one."""
    if mean is None or found["low"] is None:
        return {**found, "mean": mean}
    moved = {side: mean + (found[side] - found["mean"]) for side in ("low", "high")}
    return {**found, **moved, "mean": mean}


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
            for key, rank in zip(keys, shared_ranks([_interval(cells[key]) for key in keys]), strict=True):
                ranked[key] = replace(cells[key], rank=rank)
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
    return cell.is_usable and cell.low is not None and is_accuracy(cell.metric)


def _interval(cell: Cell) -> tuple[float, float]:
    assert cell.low is not None
    assert cell.high is not None
    return cell.low, cell.high
