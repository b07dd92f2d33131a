"""An entry and the runs of its candidates -> the cells that it fills."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from leaderboards.cells import Cell, CellStatus, Search
from leaderboards.collect import Collection
from leaderboards.estimates import interval, p_value_below
from leaderboards.metrics import is_accuracy
from leaderboards.papers import PaperTable
from leaderboards.search import choose
from leaderboards.usable_runs import UsableRuns, usable_runs
from suite.profiles import Entry, Row


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
