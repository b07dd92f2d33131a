"""Starts of jobs that began no run, a line each in the submission's folder: bad nodes, and runs that others hold.

Written by ``node`` and ``ending`` on the node itself, read by the next ``ending`` and by the status. A job that ends
before its run starts has met a bad node, unless it was asked to stop or its run was held by another process.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from suite import attempts
from suite.exit_codes import Exit
from suite.files import open_to_append, read_file
from suite.reading import read_model
from suite.records import RunDirectory
from suite.spec import Frozen

_FILE = "starts.jsonl"
_MAX_REASON = 300  # characters: a line is appended at once
_NUM_JOBS_OF_A_BAD_NODE = 2


Kind = Literal["node", "held", "stopped", "late"]


class LostStart(Frozen):
    """A start of a job that began none of its runs.

    ``kind`` is whose fault it is: the ``node``'s; nobody's where the run is ``held`` by another process or the job was
    ``stopped`` at once; the time limit's where it came too ``late`` to begin. ``node`` is "" where several may be
    at fault.
    """

    kind: Kind
    job: str
    restarts: int
    task: int
    node: str = ""
    reason: str = ""
    log: str = ""

    def describe(self) -> str:
        where = self.node or "a node"
        return f"{where} ended job {self.job} before its run started: {self.reason}; see {self.log}"


def note_bad_node(folder: Path, task: int, reason: str) -> None:
    """Note that this process could not begin: its node lacks a library, a GPU or the project."""
    _append(folder, _this_start("node", folder, task, _this_node(), reason))


def note_late(folder: Path, task: int) -> None:
    """Note that this job's time limit came before it could begin."""
    _append(
        folder, _this_start("late", folder, task, "", "its time limit came before it could begin: raise --time-min")
    )


def judge_start(folder: Path, task: int, runs: Sequence[RunDirectory], status: int) -> list[LostStart]:
    """Judge this start of this job, whose processes have ended.

    Args:
        folder: of the submission.
        task: of the job.
        runs: of the task.
        status: what srun ended with.

    Returns:
        all starts of this job that were lost, if this one is; [] where it began a run.
    """
    job = attempts.this_job()
    ours = [start for start in read_starts(folder) if start.job == job["job"]]
    if any(start.restarts == job["restarts"] for start in ours):  # a process has said so
        return ours
    begun = [attempt for run in runs for attempt in attempts.read_attempts(run)]
    if any((attempt.job, attempt.restarts) == (job["job"], job["restarts"]) for attempt in begun):
        return []
    if any(run.is_claimed() for run in runs) or status == Exit.DONE:
        lost = _this_start("held", folder, task, "", "its run is held by another process")
    elif status == Exit.INTERRUPTED:
        lost = _this_start("stopped", folder, task, "", "it was stopped as it started")
    else:
        is_alone = os.environ.get("SLURM_JOB_NUM_NODES", "1") == "1"
        reason = f"its processes ended with status {status}"
        lost = _this_start("node", folder, task, _this_node() if is_alone else "", reason)
    _append(folder, lost)
    return [*ours, lost]


def read_starts(folder: Path) -> list[LostStart]:
    """Read all starts that were lost, in order; [] where none was, or the file is not ours to look at."""
    try:
        lines = read_file(folder / _FILE).decode(errors="replace").split("\n")[:-1]
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(read_model(LostStart, line))
    return found


def bad_nodes(starts: Iterable[LostStart]) -> dict[str, list[LostStart]]:
    """Name the nodes that could not begin two jobs, with these starts."""
    found: dict[str, dict[str, LostStart]] = defaultdict(dict)
    for start in starts:
        if start.kind == "node" and start.node:
            found[start.node][start.job] = start
    return {node: list(jobs.values()) for node, jobs in found.items() if len(jobs) >= _NUM_JOBS_OF_A_BAD_NODE}


def _this_start(kind: Kind, folder: Path, task: int, node: str, reason: str) -> LostStart:
    job = attempts.this_job()
    log = folder / f"{job['job']}_{os.environ.get('SLURM_PROCID', '0')}_log.out"
    return LostStart(kind=kind, **job, task=task, node=node, reason=reason[:_MAX_REASON], log=str(log))


def _this_node() -> str:
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def _append(folder: Path, start: LostStart) -> None:
    with contextlib.suppress(OSError), open_to_append(folder / _FILE) as file:  # a full disk costs the note alone
        file.write(f"{start.model_dump_json()}\n".encode())
