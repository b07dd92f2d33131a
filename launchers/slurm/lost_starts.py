"""Starts of jobs that began no run, a line each in the submission's folder: bad nodes, and runs that others lock.

Written by ``job`` and ``requeue`` on the node itself, read by the next ``requeue`` and by the status. A job that ends
before its run starts has met a bad node, unless it was asked to stop or its run was locked by another process.
"""

import contextlib
import math
import os
import platform
import re
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from suite.base import files
from suite.base.exit_codes import Exit
from suite.base.frozen import Frozen
from suite.base.reading import read_model
from suite.store import attempts
from suite.store.run_directory import RunDirectory

WARNING_S = 180  # before a time limit; SLURM may send it up to a minute early
_STOPPED = (Exit.INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGUSR2)  # the latter two before Python handles them
_BY_ITSELF = re.compile(  # how srun says that a process ended in another way: it then stops the rest
    r"(?m)^srun: error: .*: tasks? \S+: "
    rf"(?!Terminated|User defined signal 2|Exited with exit code (?:{'|'.join(f'{status:d}' for status in _STOPPED)})$)"
)
_FILE = "starts.jsonl"  # job_end.sh writes to it too
_MAX_REASON = 1_000  # characters: a line is appended at once
_TAIL_BYTES, _NUM_LINES_SAID = 8192, 8
_NUM_JOBS_OF_A_BAD_NODE = 2

Kind = Literal["node", "held", "stopped", "late"]
_REASONS: dict[Kind, str] = {
    "held": "its run is held by another process",
    "stopped": "it was stopped as it started",
    "late": "its time limit came before it could begin: raise --time-min",
}


class LostStart(Frozen):
    """A start of a job that began none of its runs.

    ``kind`` is whose fault it is: the ``node``'s; nobody's where another process has locked the run (``held``) or the
    job was ``stopped`` at once; the time limit's where it came too ``late`` to begin. ``node`` is "" where several may
    be at fault.
    """

    kind: Kind
    job: str
    restarts: int
    task: int
    node: str = ""
    reason: str = ""
    log: str = ""

    def describe(self) -> str:
        return f"{self.node or 'a node'} ended job {self.job} before its run started: {self.reason}; see {self.log}"


def note_start(kind: Kind, folder: Path, task: int, reason: str = "", *, is_this_node: bool = True) -> LostStart:
    """Note that this process's start was lost, and return it.

    Args:
        kind: cause of the loss.
        folder: folder of the submission.
        task: number of the job's task.
        reason: lack of this node, such as of a library, a GPU or the project; "" for any other kind.
        is_this_node: True if it is this node's fault, not that of one of several.
    """
    job = attempts.this_job()
    node = os.environ.get("SLURMD_NODENAME") or platform.node() if kind == "node" and is_this_node else ""
    log = folder / f"{job['job']}_{os.environ.get('SLURM_PROCID', '0')}_log.out"
    reason = (reason or _REASONS[kind])[:_MAX_REASON]
    start = LostStart(kind=kind, **job, task=task, node=node, reason=reason, log=str(log))
    with contextlib.suppress(OSError), files.open_to_append(folder / _FILE) as file:  # a full disk costs the note alone
        file.write(f"{start.model_dump_json()}\n".encode())
    return start


def judge_start(folder: Path, task: int, runs: Sequence[RunDirectory], status: int) -> list[LostStart]:
    """Judge this start of this job, whose processes have ended.

    Args:
        folder: folder of the submission.
        task: number of the job's task.
        runs: runs of the task.
        status: exit status of srun.

    Returns:
        All starts of this job that were lost, if this one is; [] where it began a run.
    """
    job = attempts.this_job()
    ours = [start for start in read_starts(folder) if start.job == job["job"]]
    said = {start.kind for start in ours if start.restarts == job["restarts"]}  # by its processes
    if said - {"held"}:
        return ours
    if any(attempts.has_begun(run) for run in runs):
        return []
    if said:
        return ours
    if any(run.is_claimed() for run in runs):
        return [*ours, note_start("held", folder, task)]
    tail = "\n".join(read_tail(folder / f"{job['job']}_0_log.out"))
    said_by_srun = re.split(r"(?m)^start \d+ on .*$", tail)[-1]  # in this start
    if status in _STOPPED and not _BY_ITSELF.search(said_by_srun):
        return [*ours, note_start("late" if is_near_limit(seconds_left(math.inf)) else "stopped", folder, task)]
    is_alone = os.environ.get("SLURM_JOB_NUM_NODES", "1") == "1"
    lines = [line for line in said_by_srun.split("\n") if line]
    words = "; ".join(lines[-_NUM_LINES_SAID:]) or "they said nothing"
    reason = f"its processes ended with status {status}: {words}"
    return [*ours, note_start("node", folder, task, reason, is_this_node=is_alone)]


def seconds_left(otherwise: float) -> float:
    """Seconds until this job's time limit; ``otherwise`` where SLURM does not tell it."""
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    return int(end) - time.time() if end.isdecimal() else otherwise


def is_near_limit(seconds: float) -> bool:
    """Whether SLURM may have warned of a time limit that is so many seconds away."""
    return seconds < WARNING_S + 60


def read_tail(log: Path) -> list[str]:
    """Read the last lines of a log that are not empty; [] where it cannot be read."""
    try:
        text = files.read_tail(log, _TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_starts(folder: Path) -> list[LostStart]:
    """Read all starts that were lost, in order; [] where none was, or the file is not ours to look at."""
    try:
        lines = files.read_file(folder / _FILE).decode(errors="replace").split("\n")[:-1]
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(read_model(LostStart, line))
    return found


def bad_nodes(starts: Iterable[LostStart], num_jobs: int = _NUM_JOBS_OF_A_BAD_NODE) -> dict[str, list[LostStart]]:
    """Name the nodes that could not begin so many jobs, with these starts."""
    found: dict[str, dict[str, LostStart]] = defaultdict(dict)
    for start in starts:
        if start.kind == "node" and (start.node or num_jobs == 1):  # "" is one of several
            found[start.node][start.job] = start
    return {node: list(jobs.values()) for node, jobs in found.items() if len(jobs) >= num_jobs}
