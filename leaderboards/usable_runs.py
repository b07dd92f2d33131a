"""The runs of one experiment -> which of its seeds may be averaged; of several candidates -> the one that is shown.

Where each run stands is told by ``suite.standing``; here it becomes what a cell shows. A candidate is chosen by its
mean accuracy on the test set, as the papers do, which flatters: the leaderboard says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboards.cells import Search
from leaderboards.collect import CellRuns, Collection, SeedFailure
from suite.spec import Experiment, flat_fields


@dataclass(frozen=True)
class UsableRuns:
    """How far one experiment has come."""

    experiment: Experiment
    runs: CellRuns
    failures: tuple[SeedFailure, ...]
    waiting: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def values(self) -> dict[int, dict[str, float]]:
        """Of the seeds that may be averaged."""
        return self.runs.values


def usable_runs(experiment: Experiment, collection: Collection) -> UsableRuns:
    """Gather what is known of every seed that was found or is planned."""
    runs = collection.cells[experiment.cell_id]
    orphans = [
        f"seed {s} {found.reason}" for s, found in runs.standings.items() if found.state == "done" and found.reason
    ]
    return UsableRuns(experiment, runs, runs.failures, runs.waiting, (*orphans, *_mixed(runs, runs.values)))


def _mixed(runs: CellRuns, values: dict[int, dict[str, float]]) -> list[str]:
    """Tell in what the seeds that are averaged differ, beside their seed."""
    notes = []
    for what, by_seed in (("commits", runs.commits), ("loaders", runs.loaders)):
        groups: dict[str, list[int]] = {}
        for seed in values:
            groups.setdefault(by_seed[seed], []).append(seed)
        if len(groups) > 1:
            short = short_commit if what == "commits" else str
            told = ", ".join(f"{short(name)} ({_seeds(seeds)})" for name, seeds in groups.items())
            notes.append(f"different {what}: {told}")
    corrupt = {seed: count for seed, count in runs.num_corrupt_images.items() if seed in values}
    notes += [f"seed {seed} went on without {count} corrupt images" for seed, count in corrupt.items()]
    return notes


def short_commit(commit: str) -> str:
    """The first digits of a commit; a mark that the working tree differed is kept."""
    digits, plus, changes = commit.partition("+")
    return digits[:10] + plus + changes


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


# -- a place that several experiments compete for


def choose(candidates: Sequence[UsableRuns]) -> tuple[UsableRuns, Search | None]:
    """The candidate with the best mean top-1 accuracy (the first of equals, and the first where none has a result),
    and the search, where there are several."""
    compared = [candidate for candidate in candidates if candidate.values]
    shown = max(compared, key=_accuracy, default=candidates[0])
    if len(candidates) == 1:
        return shown, None
    search = Search(
        chosen=differences([candidate.experiment for candidate in candidates], shown.experiment),
        num_candidates=len(candidates),
        num_compared=len(compared),
        num_done=sum(len(candidate.values) for candidate in candidates),
    )
    return shown, search


def differences(experiments: Sequence[Experiment], chosen: Experiment) -> str:
    """The fields in which the experiments differ, with the values of the chosen one: ``learning_rate=3e-05``."""
    all_fields = [flat_fields(experiment, "parent's ") for experiment in experiments]
    mine = flat_fields(chosen, "parent's ")
    names = {name: None for fields in all_fields for name in fields}  # in order
    varied = [name for name in names if len({repr(fields.get(name)) for fields in all_fields}) > 1]
    return ", ".join(f"{name}={mine[name]}" for name in varied if name in mine)


def _accuracy(candidate: UsableRuns) -> float:
    return statistics.fmean(values["top1_percent"] for values in candidate.values.values())
