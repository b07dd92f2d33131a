"""Reasons why a job of a run waits, was lost or ended, in words: from SLURM, the job's log and the disk."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from launchers.slurm import EndedJob
from launchers.starts import bad_nodes, read_starts
from launchers.submission import Submission, submissions_folder
from suite.files import open_file

if TYPE_CHECKING:
    from launchers.status import RunStatus

_TAIL_BYTES = 8192
_FULL_BYTES = 1_000_000
_STRAGGLES = 0.5  # of the others' pace
_ENDED = {
    "OUT_OF_MEMORY": "out of memory; raise --mem-gb",
    "TIMEOUT": "its time limit came before it could stop",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not start",
    "DEADLINE": "its deadline passed",
}
_HELD = {
    "PartitionTimeLimit": "--time-min is above the partition's limit",
    "PartitionNodeLimit": "--nodes is above the partition's limit",
    "BadConstraints": "no node fits, or all that do are left out",
    "ReqNodeNotAvail": "the nodes that it needs are down or reserved",
    "DependencyNeverSatisfied": "what it depends on was cancelled",
    "JobHeldUser": "held; scontrol release lets it go on",
    "JobHeldAdmin": "held by an administrator",
}
_TELLING = re.compile(r"error|exception|no space|quota|oom|out of memory|killed|denied|exceeded", re.IGNORECASE)


def explain_wait(reason: str) -> str:
    """Spell why SLURM lets a job wait, as far as that is not plain."""
    name = reason.strip("()").partition(",")[0]
    if name in _HELD:
        return f"{reason}: {_HELD[name]}"
    is_limit = "Limit" in name or re.match(r"(QOS|Assoc)(Max|Grp)", name)
    return f"{reason}: a limit of the account, partition or QOS" if is_limit else reason


def explain_end(ended: EndedJob | None, store: Path, submission: str) -> str:
    """Spell why a job has ended that should have gone on: SLURM's word, the disk, and what stands last in its log."""
    if ended is None:
        return ""
    where = f" on {ended.nodes}" if ended.nodes else ""
    parts = [f"{ended.state}{where}" + (f" ({_ENDED[ended.state]})" if ended.state in _ENDED else "")]
    if shutil.disk_usage(store).free < _FULL_BYTES:
        parts.append(f"the disk of {store} is full")
    log = submissions_folder(store) / submission / f"{ended.job_id}_0_log.out"
    if ended.state != "COMPLETED" and (line := _last_words(log)):
        parts.append(f"{line}; see {log}")
    return "; ".join(parts)


def _last_words(log: Path) -> str:
    """Read the last line that tells of an error, or else the last one."""
    try:
        with open_file(log) as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or [""])[-1][:200]


def find_troubles(store: Path, submissions: Sequence[Submission], found: Sequence[RunStatus]) -> list[str]:
    """Name the nodes that could not begin jobs, with a log, and those that are much slower than others."""
    waiting = {status.job.experiment.id for status in found if status.goes_on}
    troubles = []
    for submission in submissions:
        if waiting.isdisjoint(submission.task_of):
            continue
        for node, starts in bad_nodes(read_starts(submissions_folder(store) / submission.name)).items():
            last = starts[-1]
            troubles.append(
                f"{node} could not begin {len(starts)} jobs, and is left out: {last.reason}; see {last.log}"
            )
    return troubles + _name_stragglers(found)


def _name_stragglers(found: Sequence[RunStatus]) -> list[str]:
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
