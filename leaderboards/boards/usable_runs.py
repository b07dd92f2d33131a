"""The runs of one experiment -> the seeds that may be averaged; several candidates -> the one that is shown.

The papers choose by accuracy on the test set; so do we, but on training seeds other than the one that is shown.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from leaderboards.boards.cells import Search
from leaderboards.boards.collect import SeedRuns, pick
from suite.spec.experiment import Experiment, flat_fields

Candidate = tuple[Experiment, SeedRuns]


def describe_origins(runs: SeedRuns) -> tuple[str, ...]:
    """Notes on the averaged seeds: which have lost their parents, and in which circumstances they differ."""
    notes = [f"seed {seed} {runs.statuses[seed].reason}" for seed in runs.values if runs.statuses[seed].reason]
    groups: dict[str, dict[str, list[int]]] = {}  # what differs -> which -> seeds
    for seed in runs.values:
        for what, found in {"commits": short_commit(runs.commits[seed]), **runs.circumstances[seed]}.items():
            group = groups.setdefault(what, {})
            if found is not None:
                group.setdefault(str(found), []).append(seed)
    for what, group in groups.items():
        if len(group) > 1:
            names = ", ".join(f"{name} ({_seeds(seeds)})" for name, seeds in group.items())
            notes.append(f"different {what}: {names}")
    for size in sorted(set(runs.batch_norm_images.values())):
        notes.append(f"batch norms saw {size} images at once, fewer than the recipe's batch")
    corrupt = runs.num_corrupt_images.items()
    return (*notes, *(f"seed {seed} went on without {count} corrupt images" for seed, count in corrupt))


def short_commit(commit: str) -> str:
    """The first digits of a commit; a mark that the working tree differed is kept."""
    digits, plus, changes = commit.partition("+")
    return digits[:10] + plus + changes


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def choose(candidates: Sequence[Candidate]) -> tuple[Sequence[Candidate], SeedRuns, Search | None]:
    """The candidates that a place shows, the first one while none can be shown, their runs, and the search, if any.

    Candidates that have a result are compared over the seeds that all of them have. Each seed shows the candidate with
    the best mean top-1 accuracy over the *other* seeds, so that it is not chosen by the number that is shown. A single
    seed has no others: the search then flatters, and says so.
    """
    if len(candidates) == 1:
        return candidates, candidates[0][1], None
    compared = [(experiment, runs) for experiment, runs in candidates if runs.values]
    seeds = sorted(set.intersection(*(set(runs.values) for _, runs in compared))) if compared else []
    winners = {seed: max(compared, key=lambda c: _accuracy(c[1], set(seeds) - {seed} or {seed})) for seed in seeds}
    search = Search(
        chosen=_name_winners([experiment for experiment, _ in candidates], winners),
        on_other_seeds=len(seeds) > 1,
        num_candidates=len(candidates),
        num_compared=len(compared),
        num_done=sum(len(runs.values) for _, runs in candidates),
    )
    shown = [candidate for candidate in candidates if candidate in winners.values()] or candidates[:1]
    return shown, pick({seed: runs for seed, (_, runs) in winners.items()}), search


def _name_winners(experiments: Sequence[Experiment], winners: Mapping[int, Candidate]) -> str:
    """``learning_rate=3e-05``, with the seeds where these chose differently."""
    seeds: dict[str, list[int]] = {}
    for seed, (winner, _) in winners.items():
        seeds.setdefault(differences(experiments, winner) or "the first", []).append(seed)
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


def _accuracy(runs: SeedRuns, seeds: Iterable[int]) -> float:
    return statistics.fmean(runs.values[seed]["top1_percent"] for seed in seeds)
