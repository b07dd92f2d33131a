"""Reasons why a job of a run waits, was lost or ended, in words: from SLURM, the job's log and the disk."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from launchers.slurm.lost_starts import read_tail
from launchers.slurm.queries import EndedJob
from launchers.slurm.submission import submissions_folder

_FULL_BYTES = 1_000_000
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
    lines = read_tail(log)
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or [""])[-1][:200]
