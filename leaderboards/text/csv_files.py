"""Boards and their runs -> CSV: a file per table in the paper's own layout, a long one with a line per cell, one with a
line per finished run. None has a date, so that the same runs give the same bytes."""

import contextlib

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.usable_runs import short_commit
from leaderboards.schemas.long_line import LongLine
from leaderboards.text.escaping import escape_cell
from leaderboards.text.notation import format_value
from leaderboards.text.records import render_lines, render_records
from suite.base.errors import RecordError
from suite.store.results import Result

LONG_COLUMNS = tuple(LongLine.model_fields)


def render_csv(board: Board) -> str:
    """The paper's table with our means: its header, row order and decimals; failed and void cells are empty."""
    usable = {place: cell for place, cell in board.cells.items() if cell.is_usable}
    rows = []
    for row in board.paper.rows:
        found = [(column, usable.get((row, column))) for column in board.paper.columns]
        values = [cell and format_value(cell.mean, board.paper.decimals(column)) for column, cell in found]
        rows.append([*map(escape_cell, row), *values])
    return render_lines([board.paper.header, *rows])


def render_long_csv(leaderboard: Leaderboard) -> str:
    """All cells of all tables, a line each, in the columns that ``LongLine`` describes."""
    lines = (
        _line(board, cell)
        for board in leaderboard.tables.values()
        for row in board.paper.rows
        for column in board.columns
        if (cell := board.cells.get((row, column))) is not None
    )
    return render_records(LONG_COLUMNS, lines, digits=10)


def _line(board: Board, cell: Cell) -> dict[str, object]:
    estimate, coverage, provenance, comparison = cell.estimate, cell.coverage, cell.provenance, cell.comparison
    interval = estimate.interval
    effect = board.effects.get((cell.row, cell.column))
    difference = effect.difference if effect else None
    shown = difference if difference is not None and difference.is_usable else None
    effect_interval = shown and shown.interval
    best_rank, worst_rank = comparison.ranks or ("", "")
    return {
        "table": board.table.name,
        "row": " / ".join(cell.row),
        "column": cell.column,
        "metric": cell.metric,
        "n": len(estimate.values) or coverage.num_done,
        "planned": coverage.num_planned,
        "baseline": f"{' / '.join(effect.baseline[0])}: {effect.baseline[1]}" if effect and difference else "",
        "verdict": comparison.verdict or "",
        "best_rank": best_rank,
        "worst_rank": worst_rank,
        "status": coverage.status,
        "chosen": " ".join(provenance.configurations) if coverage.search and coverage.num_done else "",
        "num_evaluations": " ".join(map(str, provenance.num_evaluations)),
        "commits": " ".join(short_commit(commit) for commit in provenance.commits),
        "mean": estimate.mean,
        "sd": estimate.sd if interval and provenance.experiment else None,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "paper": cell.paper,
        "difference": cell.difference if board.is_at_papers_scale else None,
        "effect": shown and shown.mean,
        "effect_low": effect_interval and effect_interval.low,
        "effect_high": effect_interval and effect_interval.high,
        "paper_effect": difference and difference.paper,
        "p_value": comparison.p_value,
        "last_top1_percent": provenance.last_top1_percent if cell.metric == "best_top1_percent" else None,
        "device_hours": provenance.device_hours,
        "images_per_s": provenance.images_per_s,
    }


RUN_COLUMNS = (
    "run", "kind", "parent", "model", "dataset", "train_fraction", "seed", "top1_percent", "top5_percent",
    "best_top1_percent", "num_evaluations", "device_hours", "energy_kwh", "peak_memory_gb", "images_per_s",
    "mfu_percent", "device", "num_nodes", "num_ranks", "num_attempts", "num_requeues", "loader",
    "num_corrupt_images", "protocol_version", "commit", "finished_at",
)  # fmt: skip
_WHERE_KNOWN = {"energy_kwh", "peak_memory_gb"}  # columns that are there as soon as one run has recorded them


def render_accounting(leaderboard: Leaderboard) -> str:
    """CSV with a line for each readable result of the leaderboard's runs."""
    rows = []
    for run in leaderboard.ended_runs():
        with contextlib.suppress(RecordError):  # the leaderboard names it
            if (result := run.read_result()) is not None:
                rows.append(_row(result))
    known = {name for row in rows for name in _WHERE_KNOWN if row[name] is not None}
    columns = [name for name in RUN_COLUMNS if name in known or name not in _WHERE_KNOWN]
    return render_records(columns, ({name: row[name] for name in columns} for row in rows))


def _row(result: Result) -> dict[str, object]:
    experiment = result.experiment
    return {
        **result.model_dump(exclude={"experiment"}),
        **experiment.model_dump(include={"kind", "model", "dataset", "train_fraction", "seed"}),
        "run": experiment.id,
        "top1_percent": round(result.top1_percent, 4),
        "top5_percent": round(result.top5_percent, 4),
        "best_top1_percent": round(result.best_top1_percent, 4),
        "device_hours": round(result.device_hours, 5),
        "energy_kwh": _rounded(result.energy_kwh, 6),
        "peak_memory_gb": _rounded(result.peak_memory_gb, 3),
        "images_per_s": round(result.images_per_s, 1),
        "mfu_percent": _rounded(result.mfu_percent, 2),
    }


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
