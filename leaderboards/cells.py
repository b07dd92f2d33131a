"""One place of a leaderboard's table: ours beside the paper's number, and how far our runs have come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leaderboards.collect import SeedFailure
from suite.profiles import Row
from suite.spec import Experiment

CellStatus = Literal["done", "partial", "failed", "void", "missing"]
STATUSES: tuple[CellStatus, ...] = ("done", "partial", "failed", "void", "missing")
IntervalMethod = Literal["", "t", "bca"]
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Search:
    """The candidates of a place that several experiments compete for."""

    chosen: str  # how the shown one differs from the others, such as "learning_rate=3e-05"
    num_candidates: int
    num_compared: int  # that have at least one result
    num_done: int  # runs, over all candidates


@dataclass(frozen=True)
class Cell:
    """Ours and the paper's number at one place of the table.

    ``status``: ``done`` has all planned seeds, of all candidates in a search; ``partial`` some of them; ``missing``
    none; ``failed`` at least one that cannot be used, whatever the others say; ``void`` the same, because
    a change of the protocol has voided it. ``sd``, ``low`` and ``high`` are None below two seeds.
    """

    row: Row
    column: str
    values: dict[int, float]  # by seed
    mean: float | None
    sd: float | None  # sample standard deviation (n - 1)
    low: float | None  # of the mean's 95 % confidence interval
    high: float | None
    paper: float | None
    status: CellStatus
    num_done: int  # seeds, of the shown candidate
    num_planned: int  # seeds, of each candidate
    interval_method: IntervalMethod = ""
    metric: str = ""  # "" where it is derived from others
    failures: tuple[SeedFailure, ...] = ()
    waiting: tuple[str, ...] = ()  # why seeds are missing: "needs <id>, which is <state>"
    notes: tuple[str, ...] = ()  # what the reader must know of the runs behind it
    experiment: Experiment | None = None  # whose runs are shown, with seed 0; None where it is derived from others
    search: Search | None = None
    rank: int | None = None
    p_value: float | None = None  # of "ours is not below the paper's"; only at the paper's scale
    device_hours: float | None = None  # of all runs behind it
    images_per_s: float | None = None  # mean of the runs shown
    commits: tuple[str, ...] = ()
    is_change: bool = False  # from a baseline, and so written with its sign
    num_evaluations: tuple[int, ...] = ()  # during one run, all that occur; 0 where a run did not record it

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def half_width(self) -> float | None:
        """Of an interval that is symmetric about the mean; else None."""
        if self.low is None or self.high is None or self.interval_method != "t":
            return None
        return (self.high - self.low) / 2

    @property
    def is_usable(self) -> bool:
        """Whether its mean may be shown without saying what is left out."""
        return self.mean is not None and self.status in ("done", "partial")

    @property
    def reached(self) -> Literal["", "yes", "no"]:
        """Whether the paper's number was reached: "no" if ours is significantly below it, "yes" if it is *not
        significantly below*, "" where that was not tested."""
        if self.p_value is None:
            return ""
        return "no" if self.p_value < SIGNIFICANCE else "yes"
