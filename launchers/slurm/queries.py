"""SLURM's word on our jobs: one ``squeue`` for all that wait or run, one ``sacct`` for all that have ended.

Jobs are told by their names, see ``submission``. Nothing here starts or ends a job but ``cancel``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from launchers.slurm.calls import ask, call, words_of
from launchers.slurm.submission import task_number
from suite.base.errors import RunError, SpecError

_NUM_LOOKS, _LOOK_S = 10, 1.0  # at what sbatch has said too little about: it may come late
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
        submissions: names of the submissions.
        since: a date, YYYY-MM-DD.
        users: users who submitted them.

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
    for job_id, state, nodes, name in _rows(text, 4):
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
        refusal = scancel(sorted(job_ids))
    raise RunError(f"{len(waiting)} jobs are still in the queue: {refusal or 'scancel ended none of them'}")


def scancel(job_ids: Sequence[str]) -> str:
    """Returns what scancel found wrong: that a job has just ended, or belongs to another user."""
    done = ask("scancel", *job_ids) if job_ids else None
    return f"scancel failed: {words_of(done)}" if done and done.returncode else ""


def look_up(name: str) -> list[str]:
    """The numbers of this user's jobs of a name, ended ones too, the oldest first; [] if none comes for a while.

    Raises:
        RunError: SLURM does not answer.
    """
    for look in range(_NUM_LOOKS):
        time.sleep(_LOOK_S if look else 0)
        if found := _find_by_name([name], [os.getuid()], "--states=all"):
            return sorted(found, key=int)
    return []


def _find_by_name(names: Collection[str], users: Collection[int], *options: str) -> set[str]:
    """Look up the jobs of these names that have not ended, and those whose states ``options`` add."""
    text = call("squeue", _of(users), "--all", "--noheader", "--format=%F|%t|%j", *options)
    return {job_id for job_id, state, name in _rows(text, 3) if name in names and (options or state != "CG")}


def _rows(text: str, num_columns: int) -> Iterator[list[str]]:
    """The lines of a table; what a site's own script prints beside it is passed over."""
    rows = (line.split("|", num_columns - 1) for line in text.splitlines())
    return (row for row in rows if len(row) == num_columns)


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
    text = call("squeue", "--me", "--all", "--noheader", "--states=PD", "--format=%i|%x|%j")
    for job_id, excluded, name in _rows(text, 3):
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
