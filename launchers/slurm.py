"""SLURM's word on our jobs: one ``squeue`` for all that wait or run, one ``sacct`` for all that have ended.

Jobs are told by their names, see ``submission``. Nothing here starts or ends a job but ``cancel``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from launchers.submission import task_number
from suite.errors import RunError, SpecError

_PATIENCE_S = 60.0
_QUEUE_FORMAT = ("ArrayJobID", "ArrayTaskID", "Name", "StateCompact", "Reason", "NodeList", "RestartCnt", "TimeLeft")
_WIDTH = 255  # squeue cuts what is longer
_ACCOUNT_FORMAT = ("JobID", "JobName", "State", "ExitCode")


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
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command[0]} did not answer: {error}. The jobs go on; try again.") from error
    if done.returncode != 0:
        raise RunError(f"{command[0]} failed: {_first_line(done.stderr)}. The jobs go on; try again.")
    return done.stdout


def read_queue() -> list[QueuedJob]:
    """All of this user's jobs that belong to a submission."""
    columns = ",".join(f"{name}:{_WIDTH}" for name in _QUEUE_FORMAT)
    jobs = []
    for line in call("squeue", "--me", "--all", "--noheader", "--array", "--Format", columns).splitlines():
        fields = [line[start : start + _WIDTH].strip() for start in range(0, len(_QUEUE_FORMAT) * _WIDTH, _WIDTH)]
        array, index, name, state, reason, nodes, restarts, time_left = fields
        place = task_number(name, int(index)) if index.isdecimal() else None
        if place is not None:
            jobs.append(QueuedJob(f"{array}_{index}", *place, state, reason, nodes, int(restarts or 0), time_left))
    return jobs


def read_ended(submissions: Iterable[str], since: str) -> dict[tuple[str, int], str]:
    """SLURM's last word on each (submission, task) that accounting knows: COMPLETED, CANCELLED, TIMEOUT, ...

    Args:
        since: a date, YYYY-MM-DD.

    Returns:
        {} where the cluster keeps no accounting.
    """
    wanted = set(submissions)
    try:
        text = call("sacct", "--allocations", "--noheader", "--parsable2", f"--starttime={since}",
                    f"--format={','.join(_ACCOUNT_FORMAT)}")  # fmt: skip
    except RunError:
        return {}
    states = {}
    for line in text.splitlines():
        job_id, name, state, _ = line.split("|", 3)
        _, _, index = job_id.partition("_")
        place = task_number(name, int(index)) if index.isdecimal() else None
        if place is not None and place[0] in wanted:
            states[place] = state.split(" ")[0]
    return states


def cancel(job_ids: Sequence[str], names: Sequence[str] = ()) -> None:
    """End jobs by their ids, and by their names."""
    if job_ids:
        call("scancel", *job_ids)
    if names:
        call("scancel", f"--name={','.join(names)}")


def max_array_size() -> int:
    """How many jobs one array may have on this cluster."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", call("scontrol", "show", "config"), re.MULTILINE)
    return int(found[1]) if found else 1001  # SLURM's default


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
