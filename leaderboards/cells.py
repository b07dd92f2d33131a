"""One place of a leaderboard's table: ours beside the paper's number, and how far our runs have come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from leaderboards.collect import SeedFailure
from suite.profiles import Row
from suite.spec import Experiment

CellStatus = Literal["done", "partial", "failed", "void", "missing"]
STATUSES: tuple[CellStatus, ...] = ("done", "partial", "failed", "void", "missing")
IntervalMethod = Literal["t", "bca"]
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Interval:
    """The 95 % confidence interval of a mean, and the sample standard deviation (n - 1)."""

    sd: float
    low: float
    high: float
    method: IntervalMethod

    @property
    def half_width(self) -> float | None:
        """Half the width of Student's, which is symmetric about the mean; None of a bootstrap's."""
        return (self.high - self.low) / 2 if self.method == "t" else None


@dataclass(frozen=True)
class Estimate:
    """Our number: its values by seed, their mean, and how far these seeds determine it."""

    values: Mapping[int, float]
    mean: float | None  # None without values, and where a derived one is not defined
    interval: Interval | None = None  # None below two seeds, and where the sides of a derived one differ in theirs
    rank: int | None = None  # among the cells that it competes with, the best being 1
    p_value: float | None = None  # of "ours is not below the paper's"; only at the paper's scale

    @property
    def reached(self) -> Literal["", "yes", "no"]:
        """Whether the paper's number was reached: "no" if ours is significantly below it, "yes" if it is *not
        significantly below*, "" where that was not tested."""
        if self.p_value is None:
            return ""
        return "no" if self.p_value < SIGNIFICANCE else "yes"


@dataclass(frozen=True)
class Search:
    """The candidates of a place that several experiments compete for."""

    chosen: str  # how the shown one differs from the others, such as "learning_rate=3e-05"
    num_candidates: int
    num_compared: int  # that have at least one result
    num_done: int  # runs, over all candidates


@dataclass(frozen=True)
class Coverage:
    """How far the runs of a cell have come.

    ``status``: ``done`` has all planned seeds, of all candidates in a search; ``partial`` some of them; ``missing``
    none; ``failed`` at least one that cannot be used, whatever the others say; ``void`` the same, because
    a change of the protocol has voided it.
    """

    status: CellStatus
    num_done: int  # seeds, of the shown candidate
    num_planned: int  # seeds, of each candidate
    failures: tuple[SeedFailure, ...] = ()
    waiting: tuple[str, ...] = ()  # why seeds are missing: "needs <id>, which is <state>"
    search: Search | None = None


@dataclass(frozen=True)
class Provenance:
    """The runs behind a cell; empty where the cell is derived from others."""

    experiment: Experiment | None = None  # whose runs are shown, with seed 0
    notes: tuple[str, ...] = ()  # what the reader must know of the runs
    device_hours: float | None = None  # of all of them, also those of candidates that are not shown
    images_per_s: float | None = None  # mean of the runs shown
    commits: tuple[str, ...] = ()
    num_evaluations: tuple[int, ...] = ()  # during one run, all that occur; 0 where a run did not record it


@dataclass(frozen=True)
class Cell:
    """Ours and the paper's number at one place of the table."""

    row: Row
    column: str
    metric: str  # "" where it is derived from others
    estimate: Estimate
    paper: float | None
    coverage: Coverage
    provenance: Provenance = Provenance()
    is_change: bool = False  # from a baseline, and so written with its sign

    @property
    def mean(self) -> float | None:
        return self.estimate.mean

    @property
    def interval(self) -> Interval | None:
        return self.estimate.interval

    @property
    def status(self) -> CellStatus:
        return self.coverage.status

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def is_usable(self) -> bool:
        """Whether its mean may be shown without saying what is left out."""
        return self.mean is not None and self.status in ("done", "partial")
