"""Values by seed -> one ``Cell`` per place in the paper's table: mean, interval, difference and status."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leaderboards.collect import CellRuns, Collection, SeedFailure
from leaderboards.papers import PaperTable
from suite.spec import Profile, RelativeGain, Suite

CellStatus = Literal["done", "partial", "failed", "missing"]
STATUSES: tuple[CellStatus, ...] = ("done", "partial", "failed", "missing")


@dataclass(frozen=True)
class Cell:
    """Ours and the paper's number at one place of the table.

    ``status``: ``done`` has all planned seeds; ``partial`` some of them; ``missing`` none; ``failed`` at least
    one that cannot be used, whatever the others say. ``sd`` and ``half_width`` are None below two seeds.
    """

    row: tuple[str, ...]
    column: str
    values: dict[int, float]  # by seed
    mean: float | None
    sd: float | None  # sample standard deviation (n - 1)
    half_width: float | None  # of the 95 % confidence interval, Student's t
    paper: float | None
    status: CellStatus
    num_done: int
    num_planned: int
    failures: tuple[SeedFailure, ...] = ()

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper


@dataclass(frozen=True)
class Board:
    """All that a leaderboard shows. ``cells`` has the places that the profile fills, keyed (row, column)."""

    suite: Suite
    profile_name: str
    profile: Profile
    paper: PaperTable
    cells: dict[tuple[tuple[str, ...], str], Cell]

    @property
    def columns(self) -> list[str]:
        """The columns with at least one cell, in the paper's order."""
        filled = {column for _, column in self.cells}
        return [column for column in self.paper.header if column in filled]

    def count(self, status: CellStatus) -> int:
        return sum(cell.status == status for cell in self.cells.values())


def aggregate(suite: Suite, profile_name: str, paper: PaperTable, collection: Collection) -> Board:
    """Make every cell of the table, measured ones first, then those derived from them."""
    profile = suite.profile(profile_name)
    cells: dict[tuple[tuple[str, ...], str], Cell] = {}
    for entry in profile.entries:
        runs = collection.cells[entry.experiment.cell_id]
        for column, metric in entry.columns.items():
            cells[entry.row, column] = _measured_cell(entry.row, column, metric, runs, paper, collection.num_planned)
    for gain in suite.derived:
        for row in paper.rows:
            if (row, gain.better) in cells and (row, gain.baseline) in cells:
                paper_value = paper.value(row, gain.column)
                cells[row, gain.column] = _gain_cell(
                    gain, cells[row, gain.better], cells[row, gain.baseline], paper_value
                )
    return Board(suite=suite, profile_name=profile_name, profile=profile, paper=paper, cells=cells)


def interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Sample standard deviation and the half-width of the mean's 95 % confidence interval; None below two values."""
    if len(values) < 2:
        return None, None
    from scipy.special import stdtrit  # a third of the start-up of scipy.stats

    sd = statistics.stdev(values)
    return sd, float(stdtrit(len(values) - 1, 0.975)) * sd / len(values) ** 0.5


def relative_gain(better: float, baseline: float) -> float | None:
    """``100 * (better - baseline) / baseline`` in percent; None where the baseline is 0."""
    return 100 * (better - baseline) / baseline if baseline else None


def _measured_cell(
    row: tuple[str, ...], column: str, metric: str, runs: CellRuns, paper: PaperTable, num_planned: int
) -> Cell:
    values = {seed: metrics[metric] for seed, metrics in runs.values.items()}
    sd, half_width = interval(list(values.values()))
    return Cell(
        row=row,
        column=column,
        values=values,
        mean=statistics.fmean(values.values()) if values else None,
        sd=sd,
        half_width=half_width,
        paper=paper.value(row, column),
        status=_status(len(values), num_planned, bool(runs.failures)),
        num_done=len(values),
        num_planned=num_planned,
        failures=runs.failures,
    )


def _gain_cell(gain: RelativeGain, better: Cell, baseline: Cell, paper_value: float | None) -> Cell:
    """The gain of the means; its interval, from the gains by seed, needs the same seeds on both sides."""
    by_seed = {seed: relative_gain(value, baseline.values.get(seed, 0.0)) for seed, value in better.values.items()}
    values = {seed: value for seed, value in by_seed.items() if value is not None}
    matched = len(values) == len(better.values) == len(baseline.values)
    sd, half_width = interval(list(values.values())) if matched else (None, None)
    have_both = better.mean is not None and baseline.mean is not None
    failed = "failed" in (better.status, baseline.status)
    num_done, num_planned = min(better.num_done, baseline.num_done), better.num_planned
    return Cell(
        row=better.row,
        column=gain.column,
        values=values,
        mean=relative_gain(better.mean or 0.0, baseline.mean or 0.0) if have_both else None,
        sd=sd,
        half_width=half_width,
        paper=paper_value,
        status=_status(num_done, num_planned, failed),
        num_done=num_done,
        num_planned=num_planned,
        failures=(),  # told once, at the measured cells
    )


def _status(num_done: int, num_planned: int, failed: bool) -> CellStatus:
    if failed:
        return "failed"
    if num_done == 0:
        return "missing"
    return "done" if num_done >= num_planned else "partial"
