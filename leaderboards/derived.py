"""Measured cells -> those that the paper derives from them: relative gains, changes from and ratios to a baseline row,
means.

The mean of a derived cell is derived from the means, as the paper does. Its interval is that of the values derived seed
by seed, which needs the same seeds on all sides, moved from their mean to the one shown: for a ratio the two differ a
little.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leaderboards.cells import Cell, CellStatus
from leaderboards.collect import Collection
from leaderboards.measured import measured_cells, summary
from leaderboards.metrics import in_points
from leaderboards.papers import PaperTable
from suite.profiles import Entry, Row
from suite.tables import ChangeFrom, Derived, RelativeGain, RelativeTo, Table

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
