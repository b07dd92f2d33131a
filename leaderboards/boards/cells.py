"""One place of a leaderboard's table: ours beside the paper's number, and how far our runs have come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from leaderboards.boards.collect import SeedFailure
from leaderboards.significance.estimates import Estimate
from leaderboards.significance.rules import Interval
from leaderboards.significance.verdicts import Verdict
from suite.spec.experiment import Experiment
from suite.spec.profile import Row
from suite.store.run_directory import RunDirectory

CellStatus = Literal["done", "partial", "failed", "void", "missing"]
STATUSES: tuple[CellStatus, ...] = ("done", "partial", "failed", "void", "missing")


@dataclass(frozen=True)
class Comparison:
    """How a number stands among its competitors, and to the paper's."""

    ranks: tuple[int, int] | None = None  # the best and the worst that it may have, 1 being the best
    is_aside: bool = False  # whether no other's rank counts it, as of a custom model
    verdict: Verdict | None = None  # on the paper's number; only at the paper's scale
    p_value: float | None = None  # of the paper's number among seeds like ours, adjusted over the table


@dataclass(frozen=True)
class Search:
    """The candidates of a place that several experiments compete for."""

    chosen: str  # how the shown one differs from the others, such as "learning_rate=3e-05"
    on_other_seeds: bool  # each seed's candidate was chosen by the others; else by the one seed that is shown
    num_candidates: int
    num_compared: int  # that have at least one result
    num_done: int  # runs, over all candidates


@dataclass(frozen=True)
class Coverage:
    """How many of a cell's runs are done.

    ``status``: ``done`` if all planned seeds are there, of all candidates in a search; ``partial`` if some are;
    ``missing`` if none is; ``failed`` if one cannot be used; ``void`` if a change of the protocol is the reason.
    """

    status: CellStatus
    num_done: int  # seeds that are shown
    num_planned: int  # seeds, of each candidate
    failures: tuple[SeedFailure, ...] = ()
    waiting: tuple[str, ...] = ()  # why seeds are missing: "needs <id>, which is <state>"
    search: Search | None = None


@dataclass(frozen=True)
class Provenance:
    """The runs behind a cell; empty where the cell is derived from others."""

    experiments: tuple[Experiment, ...] = ()  # whose runs are shown, with seed 0; several where seeds chose differently
    runs: Mapping[int, RunDirectory] = field(default_factory=dict, compare=False)  # those of the number, by seed
    notes: tuple[str, ...] = ()  # what the reader must know of the runs
    device_hours: float | None = None  # of all of them, also those of candidates that are not shown
    images_per_s: float | None = None  # mean of the runs shown
    commits: tuple[str, ...] = ()
    num_evaluations: tuple[int, ...] = ()  # during one run, all that occur; 0 where a run did not record it
    last_top1_percent: float | None = None  # mean after the last epoch, of the runs shown

    @property
    def experiment(self) -> Experiment | None:
        """The first of ``experiments``: all candidates of a search share what is asked of it."""
        return next(iter(self.experiments), None)

    @property
    def configurations(self) -> tuple[str, ...]:
        """The names of the configurations, as ``Experiment.configuration``."""
        return tuple(experiment.configuration for experiment in self.experiments)


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
    comparison: Comparison = Comparison()
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
    def last_top1_percent(self) -> float | None:
        """After the last epoch, where the cell's is the best of several evaluations of a run."""
        is_best = self.metric == "best_top1_percent" and self.provenance.num_evaluations != (1,)
        return self.provenance.last_top1_percent if is_best else None

    @property
    def is_usable(self) -> bool:
        """Whether its mean may be shown without naming what is left out."""
        return self.mean is not None and self.status in ("done", "partial")
