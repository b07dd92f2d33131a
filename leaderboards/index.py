"""All suites' leaderboards -> one index: how far each is, its headline beside the paper's, and what it costs.

A cost is judged by the runs that have finished, else by FLOPs. To count these needs torch, which no leaderboard
imports: known are those of models that ``launchers/grid.py --list`` or a finished run has counted.
"""

from __future__ import annotations

import csv
import io
import statistics
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from leaderboards.boards import Leaderboard
from leaderboards.cells import Cell
from leaderboards.collect import Collection
from leaderboards.notation import (
    NOTHING,
    pad,
    paper_decimals,
    section,
    write_difference,
    write_headline,
    write_signed,
)
from suite.costs import find_flops, run_flops
from suite.errors import SpecError
from suite.profiles import Profile
from suite.spec import Experiment, Resources
from suite.tables import Suite


@dataclass(frozen=True)
class Cost:
    """Hours of a device: a GPU's, or a core's where the profile is for CPUs.

    ``hours_to_go`` leaves out ``num_unknown`` runs, of whose like none has finished, and whose FLOPs are not known.
    """

    hours_spent: float
    hours_to_go: float
    num_unknown: int
    unit: str


def estimate_cost(profile: Profile, collection: Collection) -> Cost:
    """Over distinct runs, also those that others depend on.

    A run that is left costs as much as the finished ones of its cell; without any, as those of the same model on the
    same data per image seen (``epochs * train_fraction``), which is what training cost grows with; else by its FLOPs at
    the profile's stated rate.
    """
    experiments = {experiment.arm_id: experiment for experiment in profile.experiments()}
    of_arm = {arm_id: _finished_hours(collection, arm_id) for arm_id in experiments}
    of_family: dict[Hashable, list[float]] = {}
    for arm_id, experiment in experiments.items():
        of_family.setdefault(_family(experiment), []).extend(h / _length(experiment) for h in of_arm[arm_id])
    to_go, num_unknown = 0.0, 0
    for arm_id, experiment in experiments.items():
        left = sum(seed not in collection.arms[arm_id].values for seed in range(collection.num_planned))
        known = of_arm[arm_id] or [h * _length(experiment) for h in of_family[_family(experiment)]]
        flops = None if known else _flops(experiment)
        if flops is not None:
            known = [flops / profile.sustained_flops / 3600]
        if known:
            to_go += left * statistics.fmean(known)
        else:
            num_unknown += left
    spent = sum(hours for cell in collection.arms.values() for hours in cell.device_hours.values())
    return Cost(spent, to_go, num_unknown, "GPU-hours" if profile.device == "gpu" else "core-hours")


def write_to_go(cost: Cost) -> str:
    """``1.5``, ``1.5 + ? (3 runs)`` where the cost of some is not known, ``?`` where nothing is."""
    unknown = f"? ({cost.num_unknown} run{'s' if cost.num_unknown > 1 else ''})" if cost.num_unknown else ""
    if unknown and not cost.hours_to_go:
        return unknown
    return f"{cost.hours_to_go:.3g}" + (f" + {unknown}" if unknown else "")


def _flops(experiment: Experiment) -> float | None:
    """Of a run; None where its model was never counted, or its image set, one of the user's own, is not at hand."""
    try:
        return run_flops(experiment, Resources(), find_flops)
    except SpecError:
        return None


def _finished_hours(collection: Collection, arm_id: str) -> list[float]:
    cell = collection.arms[arm_id]
    return [cell.device_hours[seed] for seed in cell.values]


def _family(experiment: Experiment) -> Hashable:
    return experiment.kind, experiment.model, experiment.dataset, experiment.image_size


def _length(experiment: Experiment) -> float:
    """Images seen, in whole training sets; one measurement is as long as another."""
    return experiment.recipe.epochs * experiment.train_fraction if experiment.is_trained else 1.0


# -- the index

CSV_COLUMNS = (
    "suite", "item", "profile", "cells_done", "cells", "headline", "difference", "low", "high", "paper_difference",
    "status", "hours_spent", "hours_to_go", "runs_of_unknown_cost", "unit", "error",
)  # fmt: skip
LEGEND = """\
Ours and paper are the headline's difference, ours with the 95 % interval over training seeds, or without one their
number (n). Only the profile `paper` is at the paper's scale: in all others the two are not comparable.
Spent counts all attempts of all runs, also of those that others depend on, as GPU-hours or core-hours; what suites
share is counted in each. To go is judged by finished runs of the same cell, else of the same model on the same data by
images seen, else by FLOPs at the rate that the profile states; "?" where those are not known:
`launchers/grid.py --list` counts them."""


@dataclass(frozen=True)
class IndexLine:
    """A suite at one scale. Without runs, ``profile_name`` is "" and ``leaderboard`` tells of the paper alone; a suite
    that cannot be built has its ``error``."""

    suite: Suite
    profile_name: str = ""
    leaderboard: Leaderboard | None = None
    cost: Cost | None = None
    planned: Cost | None = None  # of one without runs
    error: str = ""

    @property
    def headline(self) -> Cell | None:
        return None if self.leaderboard is None else self.leaderboard.headline

    @property
    def summary(self) -> str:
        """For the terminal: two lines, or more where 80 characters do not hold them."""
        if self.leaderboard is None or self.cost is None:
            return f"{self.suite.name}: {'cannot be built' if self.error else 'no runs'}"
        cost = f"{self.cost.hours_spent:.3g} {self.cost.unit} so far, {write_to_go(self.cost)} to go"
        state = f"{self.suite.name}, {self.profile_name}: {_cells(self)} cells, {cost}"
        return "\n".join(
            textwrap.fill(t, 80, initial_indent=i, subsequent_indent="  ", break_on_hyphens=False)
            for t, i in ((state, ""), (write_headline(self.leaderboard), "  "))
        )


def render_index(lines: Sequence[IndexLine]) -> str:
    """Markdown: a line for each suite and scale that has runs, what could not be built, and the suites without runs."""
    header = ["suite", "item", "profile", "cells done", "headline", "ours", "paper", "spent", "to go"]
    begun = [_texts(line) for line in lines if line.cost or line.error]
    table = pad(header, begun, right=[False] * 3 + [True, False] + [True] * 4) if begun else "No suite has runs yet."
    idle = section("## No runs yet", (_plan(line) for line in lines if not line.cost and not line.error))
    errors = section(
        "## Not built", (f"{line.suite.name}, {line.profile_name}: {line.error}" for line in lines if line.error)
    )
    return "\n\n".join(["# Leaderboards of all suites", table, LEGEND, *errors, *idle]) + "\n"


def render_index_csv(lines: Sequence[IndexLine]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_record(line) for line in lines)
    return text.getvalue()


def _texts(line: IndexLine) -> list[str]:
    suite, cell, cost = line.suite, line.headline, line.cost
    profile = f"[{line.profile_name}]({suite.name}/{line.profile_name}.md)" if cost else line.profile_name or "no runs"
    return [
        suite.name,
        suite.item,
        profile,
        "not built" if line.error else _cells(line),
        suite.headline.text,
        write_difference(cell) if cell and cost else NOTHING,
        write_signed(cell.paper, paper_decimals(cell)) if cell else NOTHING,
        f"{cost.hours_spent:.3g} {cost.unit}" if cost else NOTHING,
        f"{write_to_go(cost)} {cost.unit}" if cost else NOTHING,
    ]


def _plan(line: IndexLine) -> str:
    """``suite (Table 2): ConViT over DeiT (paper: +13.0); 0/30 cells, 5 GPU-hours to go in profile paper``."""
    cell = line.headline
    paper = f" (paper: {write_signed(cell.paper, paper_decimals(cell))})" if cell and cell.paper is not None else ""
    text = f"{line.suite.name} ({line.suite.item}): {line.suite.headline.text}{paper}"
    if line.leaderboard is None or line.planned is None:
        return text
    cells, to_go = line.leaderboard.num_cells, f"{write_to_go(line.planned)} {line.planned.unit}"
    return f"{text}; 0/{cells} cells, {to_go} to go in profile {line.leaderboard.profile_name}"


def _cells(line: IndexLine) -> str:
    if line.leaderboard is None or line.cost is None:
        return NOTHING
    return f"{line.leaderboard.count('done')}/{line.leaderboard.num_cells}"


def _record(line: IndexLine) -> dict[str, object]:
    """Without runs the numbers are empty, but for the paper's."""
    cell, leaderboard, cost = line.headline, line.leaderboard, line.cost
    ours = cell if cost else None
    interval = ours and ours.interval
    numbers = {
        "difference": ours and ours.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "paper_difference": cell and cell.paper,
        "hours_spent": cost and cost.hours_spent,
        "hours_to_go": cost and cost.hours_to_go,
    }
    return {
        "suite": line.suite.name,
        "item": line.suite.item,
        "profile": line.profile_name,
        "cells_done": leaderboard.count("done") if leaderboard and cost else "",
        "cells": leaderboard.num_cells if leaderboard and cost else "",
        "headline": line.suite.headline.text,
        "status": ours.status if ours else "",
        "runs_of_unknown_cost": cost.num_unknown if cost else "",
        "unit": cost.unit if cost else "",
        "error": line.error,
        **{name: "" if number is None else f"{number:.10g}" for name, number in numbers.items()},
    }
