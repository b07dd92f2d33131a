"""The runs of one experiment -> which of its seeds may be averaged; of several candidates -> the one that is shown.

Where each run stands is told by ``suite.standing``; here it becomes what a cell shows. The papers choose by accuracy on
the test set; so do we, but on training seeds other than the one that is shown.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from leaderboards.cells import Search
from leaderboards.collect import ArmRuns, Collection, SeedFailure
from suite.spec import Experiment, flat_fields, with_ancestors

# The fields of ``Circumstances``, and what several of each are called.
_CIRCUMSTANCES = {
    "commit": "commits",
    "loader": "loaders",
    "mode": "modes",
    "device": "devices",
    "num_ranks": "numbers of ranks",
    "threads_per_rank": "numbers of threads a rank",
    "micro_batch_size": "sizes of micro-batches",
}


@dataclass(frozen=True)
class UsableRuns:
    """How far one experiment has come."""

    experiment: Experiment
    runs: ArmRuns
    failures: tuple[SeedFailure, ...]
    waiting: tuple[str, ...]
    notes: tuple[str, ...]
    networks: frozenset[str]  # that the numbers are measured on, and their parents, without their seeds

    @property
    def values(self) -> dict[int, dict[str, float]]:
        """Of the seeds that may be averaged."""
        return self.runs.values


def usable_runs(experiment: Experiment, collection: Collection) -> UsableRuns:
    """Gather what is known of every seed that was found or is planned."""
    runs = collection.arms[experiment.arm_id]
    orphans = [
        f"seed {s} {found.reason}" for s, found in runs.standings.items() if found.state == "done" and found.reason
    ]
    networks = frozenset(network.arm_id for network in with_ancestors([experiment]))
    notes = (*orphans, *_mixed(runs, runs.values), *_batch_norms(experiment.recipe.batch_size, runs))
    return UsableRuns(experiment, runs, runs.failures, runs.waiting, notes, networks)


def _mixed(runs: ArmRuns, values: dict[int, dict[str, float]]) -> list[str]:
    """Tell in what the seeds that are averaged differ, beside their seed."""
    notes = []
    for field, what in _CIRCUMSTANCES.items():
        groups: dict[str, list[int]] = {}
        for seed in values:
            if (found := getattr(runs.circumstances[seed], field)) is not None:
                groups.setdefault(short_commit(found) if field == "commit" else str(found), []).append(seed)
        if len(groups) > 1:
            told = ", ".join(f"{name} ({_seeds(seeds)})" for name, seeds in groups.items())
            notes.append(f"different {what}: {told}")
    corrupt = {seed: count for seed, count in runs.num_corrupt_images.items() if seed in values}
    notes += [f"seed {seed} went on without {count} corrupt images" for seed, count in corrupt.items()]
    return notes


def _batch_norms(batch_size: int, runs: ArmRuns) -> list[str]:
    """Tell where batch norms saw fewer images at once than the recipe's batch, which gives other numbers."""
    trained = [runs.circumstances[seed] for seed in runs.values]
    sizes = sorted({one.micro_batch_size or batch_size for one in trained if one.has_batch_norm} - {batch_size})
    return [f"batch norms saw {size} images at once, not the recipe's batch of {batch_size}" for size in sizes]


def short_commit(commit: str) -> str:
    """The first digits of a commit; a mark that the working tree differed is kept."""
    digits, plus, changes = commit.partition("+")
    return digits[:10] + plus + changes


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


# -- a place that several experiments compete for


def choose(candidates: Sequence[UsableRuns]) -> tuple[UsableRuns, Search | None]:
    """The runs that a place shows (the first candidate's where none has a result), and the search, if there was one.

    Candidates that have a result are compared over the seeds that all of them have. The run that a seed shows is of the
    candidate with the best mean top-1 accuracy over the *other* seeds, so that no number is shown that it was chosen
    by. Of one seed alone there are no others: the search then says that it flatters.
    """
    if len(candidates) == 1:
        return candidates[0], None
    compared = [candidate for candidate in candidates if candidate.values]
    seeds = sorted(set.intersection(*(set(candidate.values) for candidate in compared))) if compared else []
    winners = {seed: max(compared, key=lambda c: _accuracy(c, set(seeds) - {seed} or {seed})) for seed in seeds}
    shown = max(compared, key=lambda c: _accuracy(c, seeds), default=candidates[0]) if seeds else candidates[0]
    search = Search(
        chosen=_name_winners([candidate.experiment for candidate in candidates], winners),
        on_other_seeds=len(seeds) > 1,
        num_candidates=len(candidates),
        num_compared=len(compared),
        num_done=sum(len(candidate.values) for candidate in candidates),
        winners={seed: winner.experiment for seed, winner in winners.items()},
    )
    runs = shown.runs.with_results_of({seed: winner.runs for seed, winner in winners.items()})
    return replace(shown, runs=runs, networks=shown.networks.union(*(w.networks for w in winners.values()))), search


def _name_winners(experiments: Sequence[Experiment], winners: Mapping[int, UsableRuns]) -> str:
    """``learning_rate=3e-05``, and of which seeds, where the seeds chose differently."""
    seeds: dict[str, list[int]] = {}
    for seed, winner in winners.items():
        seeds.setdefault(differences(experiments, winner.experiment) or "the first", []).append(seed)
    if len(seeds) == 1:
        return next(iter(seeds))
    return "; ".join(f"{name} ({_seeds(of)})" for name, of in seeds.items())


def differences(experiments: Sequence[Experiment], chosen: Experiment) -> str:
    """The fields in which the experiments differ, with the values of the chosen one: ``learning_rate=3e-05``."""
    all_fields = [flat_fields(experiment, "parent's ") for experiment in experiments]
    mine = flat_fields(chosen, "parent's ")
    names = {name: None for fields in all_fields for name in fields}  # in order
    varied = [name for name in names if len({repr(fields.get(name)) for fields in all_fields}) > 1]
    return ", ".join(f"{name}={mine[name]}" for name in varied if name in mine)


def _accuracy(candidate: UsableRuns, seeds: Iterable[int]) -> float:
    return statistics.fmean(candidate.values[seed]["top1_percent"] for seed in seeds)
