"""Leaderboard and run store -> the runs behind each cell, and the command that makes them again."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leaderboards.boards import Board, Leaderboard
from leaderboards.cells import Cell
from leaderboards.usable_runs import short_commit
from suite.arguments import program
from suite.costs import write_hours
from suite.errors import RecordError
from suite.profiles import Row
from suite.records import RunDirectory
from suite.results import Result
from suite.run_store import find_runs
from suite.spec import Experiment, experiment_fields

COLUMNS = ("seed", "top-1 %", "device hours", "images/s", "loader", "device", "commit", "finished")


@dataclass(frozen=True)
class RunsOfCell:
    """``runs`` has a line for each run that is shown, in the order of ``COLUMNS``; ``problems`` those that are not."""

    run: str  # "" where several experiments were searched
    command: str
    runs: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...]


class RunReader:
    """Reads each run of a leaderboard once, whichever cells it fills."""

    def __init__(self, leaderboard: Leaderboard, store: Path) -> None:
        self._leaderboard, self._store = leaderboard, store
        self._varied = _varied_fields(leaderboard)
        self._entered = _arguments_by_arm(leaderboard)
        self._found: dict[str, Mapping[int, RunDirectory]] = {}
        self._lines: dict[str, tuple[str, ...] | None] = {}

    def of_row(self, board: Board, row: Row) -> dict[str, RunsOfCell]:
        """By column, of the cells that are measured; equal ones are the same object."""
        told: dict[RunsOfCell, RunsOfCell] = {}
        cells = {column: board.cells.get((row, column)) for column in board.columns}
        found = {column: self._tell(cell) for column, cell in cells.items() if cell and cell.provenance.experiment}
        return {column: told.setdefault(runs, runs) for column, runs in found.items()}

    def _tell(self, cell: Cell) -> RunsOfCell:
        experiment = cell.provenance.experiment
        assert experiment is not None, f"{cell.row}, {cell.column} is derived"
        winners = cell.coverage.search.winners if cell.coverage.search else {}
        lines = [self._line(winners.get(seed, experiment), seed) for seed in sorted(cell.estimate.values)]
        failures = [f"seed {failure.seed}, {failure.state}: {failure.reason}" for failure in cell.coverage.failures]
        return RunsOfCell(
            run=experiment.arm,
            command=self._command(experiment, cell.coverage.num_planned),
            runs=tuple(line for line in lines if line is not None),
            problems=(*failures, *cell.coverage.waiting),
        )

    def _line(self, experiment: Experiment, seed: int) -> tuple[str, ...] | None:
        name = f"{experiment.arm}/{seed}"
        if name not in self._lines:
            self._lines[name] = self._read(experiment, seed)
        return self._lines[name]

    def _read(self, experiment: Experiment, seed: int) -> tuple[str, ...] | None:
        if experiment.arm_id not in self._found:
            self._found[experiment.arm_id] = find_runs(self._store, experiment)
        run = self._found[experiment.arm_id].get(seed)
        with contextlib.suppress(RecordError):  # the leaderboard names it
            result = run.read_result() if run else None
            return _write_line(result) if result else None
        return None

    def _command(self, experiment: Experiment, num_seeds: int) -> str:
        """Its filters name every field in which this experiment differs from others that the profile plans."""
        grid = program("grid", "launchers/grid.py")
        fields = experiment_fields(experiment)
        only = [f"{name}={fields[name]}" for name in self._varied]
        words = ["--suite", self._leaderboard.suite.words, "--profile", self._leaderboard.profile_name]
        words += self._entered.get(experiment.arm_id, [])
        words += ["--seeds", str(num_seeds), *(["--only", *only] if only else [])]
        return f"{'python ' if grid.endswith('.py') else ''}{grid} {shlex.join(words)}"


def _arguments_by_arm(leaderboard: Leaderboard) -> dict[str, list[str]]:
    """The words that enter each challenger, by its arms; none by those of the papers' models, which need none."""
    by_name = {challenger.name: ["--challenger", *challenger.arguments] for challenger in leaderboard.suite.challengers}
    entries = sorted(leaderboard.profile.entries, key=lambda entry: not entry.challenger)  # the papers' come last
    return {candidate.arm_id: by_name.get(entry.challenger, []) for entry in entries for candidate in entry.candidates}


def _varied_fields(leaderboard: Leaderboard) -> list[str]:
    """The fields that ``--only`` can tell the profile's experiments apart by, without their seed."""
    values: dict[str, set[str]] = {}
    for experiment in leaderboard.profile.experiments():
        for name, value in experiment_fields(experiment).items():
            values.setdefault(name, set()).add(str(value))
    return [name for name, found in values.items() if len(found) > 1 and name != "seed"]


def _write_line(result: Result) -> tuple[str, ...]:
    how = f" x {result.num_ranks}" if result.num_ranks > 1 else ""
    how += ", compiled" if result.compiled else ""
    return (
        str(result.experiment.seed), f"{result.top1_percent:.2f}", write_hours(result.device_hours),
        f"{result.images_per_s:,.1f}", result.loader, f"{result.device}{how}", short_commit(result.commit),
        result.finished_at[:19],
    )  # fmt: skip
