"""SLURM's word on our jobs: one ``squeue`` for all that wait or run, one ``sacct`` for all that have ended.

Jobs are told by their names, see ``submission``. Nothing here starts or ends a job but ``cancel``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from launchers.submission import task_number
from suite.errors import RunError, SpecError

_PATIENCE_S = 60.0
_NODES_PATIENCE_S, _NODES_LOOK_S = 120.0, 2.0
_NUM_CANCELS = 3  # a job that is being requeued may slip through the first
_QUEUE_FORMAT = ("ArrayJobID", "ArrayTaskID", "Name", "StateCompact", "Reason", "NodeList", "RestartCnt", "TimeLeft")
_WIDTH = 255  # squeue cuts what is longer
_ACCOUNT_FORMAT = ("JobID", "State", "NodeList", "JobName")


@dataclass(frozen=True)
class QueuedJob:
    """A job that waits or runs. ``state`` is SLURM's short one: PD, R, CG, ..."""

    job_id: str  # ARRAY_TASK
    submission: str
    task: int
    state: str
    reason: str
    nodes: str
    num_restarts: int
    time_left: str


@dataclass(frozen=True)
class EndedJob:
    """A job that accounting knows. ``state`` is COMPLETED, CANCELLED, TIMEOUT, ..."""

    job_id: str  # ARRAY_TASK
    state: str
    nodes: str


def check_there() -> None:
    """Check that SLURM's commands can be called.

    Raises:
        SpecError: no SLURM on this machine.
    """
    missing = [name for name in ("sbatch", "squeue", "srun") if shutil.which(name) is None]
    if missing:
        raise SpecError(
            f"--cluster slurm: {', '.join(missing)} not found on PATH. Run this on a login node, or "
            "leave out --cluster to train on this machine."
        )


def call(*command: str) -> str:
    """The output of one of SLURM's commands.

    Raises:
        RunError: if it fails, or does not answer.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE_S, check=False,
            env={**os.environ, "SLURM_BITSTR_LEN": "0"},  # else squeue cuts long lists of an array's jobs
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command[0]} did not answer: {error}. The jobs go on; try again.") from error
    if done.returncode != 0:
        raise RunError(f"{command[0]} failed: {_last_line(done.stderr)}. The jobs go on; try again.")
    return done.stdout


def read_queue(users: Collection[int]) -> list[QueuedJob]:
    """All jobs of these users, by their numbers, that belong to a submission."""
    columns = ",".join(f"{name}:{_WIDTH}" for name in _QUEUE_FORMAT)
    jobs = []
    for line in call("squeue", _of(users), "--all", "--noheader", "--array", "--Format", columns).splitlines():
        fields = [line[start : start + _WIDTH].strip() for start in range(0, len(_QUEUE_FORMAT) * _WIDTH, _WIDTH)]
        array, index, name, state, reason, nodes, restarts, time_left = fields
        place = task_number(name, int(index)) if index.isdecimal() else None
        if place is not None:
            jobs.append(QueuedJob(f"{array}_{index}", *place, state, reason, nodes, int(restarts or 0), time_left))
    return jobs


def _of(users: Collection[int]) -> str:
    return f"--user={','.join(map(str, sorted(users)))}"


def read_ended(submissions: Iterable[str], since: str, users: Collection[int]) -> dict[tuple[str, int], EndedJob]:
    """SLURM's last word on each (submission, task) that accounting knows.

    Args:
        submissions: their names.
        since: a date, YYYY-MM-DD.
        users: who made them.

    Returns:
        {} where the cluster keeps no accounting.
    """
    wanted = set(submissions)
    try:
        text = call("sacct", _of(users), "--allocations", "--noheader", "--parsable2", f"--starttime={since}",
                    f"--format={','.join(_ACCOUNT_FORMAT)}")  # fmt: skip
    except RunError:
        return {}
    states = {}
    for line in text.splitlines():
        job_id, state, nodes, name = line.split("|", 3)
        _, _, index = job_id.partition("_")
        place = task_number(name, int(index)) if index.isdecimal() else None
        if place is not None and place[0] in wanted:
            states[place] = EndedJob(job_id, state.split(" ")[0], "" if "None" in nodes else nodes)
    return states


def cancel(submissions: Collection[str], others: Collection[str], users: Collection[int]) -> int:
    """End all jobs of submissions, and those of other names; returns how many of the first there were.

    Raises:
        RunError: some of them are still in the queue.
    """
    found: set[str] = set()
    for _ in range(_NUM_CANCELS):
        waiting = [job for job in read_queue(users) if job.submission in submissions and job.state != "CG"]
        found |= {job.job_id for job in waiting}
        job_ids = {job.job_id.partition("_")[0] for job in waiting} | _find_by_name(others, users)
        if not job_ids:
            return len(found)
        refusal = _scancel(sorted(job_ids))
    raise RunError(f"{len(waiting)} jobs are still in the queue: {refusal or 'scancel ended none of them'}")


def _scancel(job_ids: Sequence[str]) -> str:
    """Returns what scancel found wrong: that a job has just ended, or belongs to another user."""
    try:
        call("scancel", *job_ids)
    except RunError as error:
        return str(error)
    return ""


def _find_by_name(names: Collection[str], users: Collection[int]) -> set[str]:
    """Look up the jobs of these names that have not ended."""
    lines = call("squeue", _of(users), "--all", "--noheader", "--format=%A|%t|%j").splitlines()
    jobs = [line.split("|", 2) for line in lines]
    return {job_id for job_id, state, name in jobs if name in names and state != "CG"}


def hides_jobs() -> bool:
    """Whether this cluster shows users no jobs but their own."""
    found = re.search(r"^PrivateData\s*=\s*(.*)", call("scontrol", "show", "config"), re.MULTILINE)
    return found is not None and "jobs" in found[1].split(",")


def wait_for_nodes() -> bool:
    """Wait for nodes that a controller which has just started does not know yet; returns whether there were any."""
    give_up_at, has_waited = time.monotonic() + _NODES_PATIENCE_S, False
    with contextlib.suppress(RunError):
        while "unk" in call("sinfo", "--noheader", "--format=%t") and time.monotonic() < give_up_at:
            has_waited = True
            time.sleep(_NODES_LOOK_S)
    return has_waited


def exclude(job_id: str, nodes: Sequence[str]) -> None:
    """Keep a job that waits off these nodes, and no others."""
    call("scontrol", "update", f"JobId={job_id}", f"ExcNodeList={','.join(nodes)}")


def delay(job_id: str, seconds: int) -> None:
    """Let a job that waits begin later."""
    call("scontrol", "update", f"JobId={job_id}", f"StartTime=now+{seconds}")


def exclude_from_all(submission: str, node: str) -> None:
    """Keep all jobs of a submission that wait off one more node."""
    for line in call("squeue", "--me", "--all", "--noheader", "--states=PD", "--format=%i|%x|%j").splitlines():
        job_id, excluded, name = line.split("|", 2)
        place = task_number(name, 0)
        known = [] if excluded in ("", "(null)") else [excluded]
        if place is not None and place[0] == submission and node not in _hosts(known):
            exclude(re.sub(r"%\d+", "", job_id), [*known, node])


def leaves_nodes(excluded: Sequence[str]) -> bool:
    """Whether the partition of this job has any node beside these."""
    partition = os.environ.get("SLURM_JOB_PARTITION", "")
    options = ["--partition", partition] if partition else []
    try:
        nodes = set(call("sinfo", "--noheader", "--Node", "--format=%N", *options).split())
        return not nodes or bool(nodes - _hosts(excluded))
    except RunError:
        return True


def _hosts(nodes: Sequence[str]) -> set[str]:
    """Spell lists such as node[1-3] out."""
    return set(call("scontrol", "show", "hostnames", ",".join(nodes)).split()) if nodes else set()


def max_array_size() -> int:
    """How many jobs one array may have on this cluster."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", call("scontrol", "show", "config"), re.MULTILINE)
    return int(found[1]) if found else 1001  # SLURM's default


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
