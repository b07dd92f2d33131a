"""The state of a grid's runs -> the nodes that stand in its way: those that cannot begin jobs, and the slow ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from launchers.slurm.grid_status import JobStatus
from launchers.slurm.lost_starts import bad_nodes, read_starts
from launchers.slurm.submission import Submission, submissions_folder

_STRAGGLES = 0.5  # of the others' pace


def find_troubles(store: Path, submissions: Sequence[Submission], found: Sequence[JobStatus]) -> list[str]:
    """Name the nodes that could not begin a job, with its log, and those that are much slower than others."""
    waiting = {status.job.experiment.id for status in found if status.goes_on}
    troubles = []
    for submission in submissions:
        if waiting.isdisjoint(submission.task_of):
            continue
        lost = read_starts(submissions_folder(store) / submission.name)
        bad = bad_nodes(lost)
        for node, starts in bad_nodes(lost, num_jobs=1).items():
            what = f"could not begin {len(starts)} jobs, and is left out" if node in bad else "lost a start"
            troubles.append(f"{node or 'one of several nodes'} {what}: {starts[-1].reason}; see {starts[-1].log}")
    return troubles + _name_stragglers(found)


def _name_stragglers(found: Sequence[JobStatus]) -> list[str]:
    """Name nodes at less than half the pace of others that train the same model at the same number of ranks."""
    rates: dict[object, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for status in found:
        rate = (status.metrics or {}).get("images_per_s")
        if status.state == "running" and status.node and rate and not status.silence:
            experiment = status.job.experiment
            work = (experiment.model, str(experiment.model_options), experiment.image_size, experiment.kind)
            rates[(*work, experiment.recipe.precision, status.job.resources.num_ranks)][status.node].append(rate)
    slow = {}
    for nodes in rates.values():
        for node, own in nodes.items():
            others = [rate for other, values in nodes.items() if other != node for rate in values]
            if others and median(own) < _STRAGGLES * median(others):
                slow[node] = f"{node} is slow: {median(own):,.0f} images/s, where others reach {median(others):,.0f}"
    return list(slow.values())
