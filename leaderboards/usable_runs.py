"""The runs of one experiment -> which of its seeds may be averaged, and what to say of the others.

Where each run stands is told by ``suite.standing``; here it becomes what a cell shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from leaderboards.collect import CellRuns, Collection, SeedFailure
from suite.spec import Experiment


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
    """What is known of every seed that was found or is planned."""
    runs = collection.cells[experiment.cell_id]
    orphans = [
        f"seed {s} {found.reason}" for s, found in runs.standings.items() if found.state == "done" and found.reason
    ]
    return UsableRuns(experiment, runs, runs.failures, runs.waiting, (*orphans, *_mixed(runs, runs.values)))


def _mixed(runs: CellRuns, values: dict[int, dict[str, float]]) -> list[str]:
    """In what the seeds that are averaged differ, beside their seed."""
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
