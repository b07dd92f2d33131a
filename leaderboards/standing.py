"""The runs of one experiment and those that they depend on -> which of its seeds may be averaged, and why not others.

A seed whose run waits for another says for which; one that stands on a void result, however many runs lie between, is
void too.
"""

from __future__ import annotations

from dataclasses import dataclass

from leaderboards.collect import CellRuns, Collection, SeedFailure
from suite.spec import Experiment


@dataclass(frozen=True)
class Standing:
    """How far one experiment has come."""

    experiment: Experiment
    runs: CellRuns
    values: dict[int, dict[str, float]]  # of the seeds that may be averaged
    failures: tuple[SeedFailure, ...]
    waiting: tuple[str, ...]
    notes: tuple[str, ...]


def stand(experiment: Experiment, collection: Collection) -> Standing:
    """Settle every seed that was found or is planned."""
    runs = collection.cells[experiment.cell_id]
    failures, waiting, notes = list(runs.failures), [], []
    failed = {failure.seed for failure in runs.failures}
    values = dict(runs.values)
    for seed in sorted({*runs.values, *range(collection.num_planned)} - failed) if experiment.parents else ():
        seeded = experiment.with_seed(seed)
        if seed in runs.values:
            parent, state = _state_of_taken_over(seeded, runs.parents.get(seed, ""), collection)
            if state == "void":
                del values[seed]
                reason = f"void: took over {parent}, which is void. Run the grid again with --retry-failed"
                failures.append(SeedFailure(seed, reason, "", "void"))
            elif state != "done":
                notes.append(f"seed {seed} took over {parent}, which is {state} in this store")
        elif (need := _need(seeded, collection)) is not None:
            reason, hopeless = need
            if hopeless:
                failures.append(SeedFailure(seed, reason, ""))
            else:
                waiting.append(reason)
    notes += _mixed(runs, values)
    return Standing(experiment, runs, values, tuple(failures), tuple(waiting), tuple(notes))


def state_of(experiment: Experiment, collection: Collection) -> str:
    """``done``, ``failed``, ``void``, ``unfinished`` or ``missing``."""
    runs, seed = collection.cells[experiment.cell_id], experiment.seed
    for failure in runs.failures:
        if failure.seed == seed:
            return failure.state
    if seed in runs.values:
        _, below = _state_of_taken_over(experiment, runs.parents.get(seed, ""), collection)
        return "void" if below == "void" else "done"
    return "unfinished" if seed in runs.unfinished else "missing"


def _state_of_taken_over(experiment: Experiment, parent_id: str, collection: Collection) -> tuple[str, str]:
    """The run that a finished one says it took over, and its state; of its only parent, where it does not say."""
    if not parent_id and len(experiment.parents) == 1:
        parent_id = experiment.parents[0].id
    if not parent_id:
        return "", "done"
    parent = next((parent for parent in experiment.parents if parent.id == parent_id), None)
    return parent_id, "missing" if parent is None else state_of(parent, collection)


def _need(experiment: Experiment, collection: Collection) -> tuple[str, bool] | None:
    """What an unfinished run waits for, and whether in vain; None where it has all that it needs."""
    found: tuple[str, bool] | None = None
    for parent in experiment.parents:
        state = state_of(parent, collection)
        if state == "done":
            continue
        deeper = _need(parent, collection)
        reason = f"needs {parent.id}, which is {state}" + (f" and {deeper[0]}" if deeper else "")
        hopeless = state in ("failed", "void") or bool(deeper and deeper[1])
        if hopeless:
            return reason, True
        found = found or (reason, False)
    return found


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
