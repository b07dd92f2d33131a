"""The attempts at a run, which tell its cost: ``attempts.jsonl`` gets a line as each starts and as each ends.

An attempt that was killed wrote no end: it is taken to have lasted until its run's last sign of life.
"""

import contextlib
import os
import platform
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from suite.base.files import append_record, read_file
from suite.base.frozen import Frozen
from suite.base.reading import read_object
from suite.store.heartbeat import read_beat
from suite.store.run_directory import RunDirectory

_Count = Annotated[int, Field(ge=0, le=10**9)]
_Time = Annotated[float, Field(ge=0, le=1e11)]
_Usage = Annotated[float, Field(ge=0, le=1e9)]
End = Literal["finished", "failed", "interrupted", "lost"]  # lost: killed without a word


class Attempt(Frozen):
    """One attempt at a run. Times are in seconds since 1970. A sum over all attempts is in range for a result."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    started_at: _Time
    ended_at: _Time | None = None
    end: End | None = None
    why: str = ""  # it ended, where that is not plain: "time limit", "preempted"
    host: str = ""
    job: str = ""  # SLURM's, "" on a machine of one's own
    restarts: _Count = 0  # how often SLURM had requeued that job before
    num_nodes: _Count = 1
    num_ranks: _Count = 1
    from_step: _Count = 0  # of the checkpoint that it went on from
    num_unusable_checkpoints: _Count = 0  # newer ones than that, damaged or not its own
    staging_s: _Time = 0.0  # of its seconds, those in which its images were copied to the node
    energy_kwh: _Usage | None = None  # until its end, or where it was killed its last checkpoint; None: unknown
    peak_memory_gb: _Usage | None = None  # of the rank that took most

    @property
    def seconds(self) -> float:
        return max(0.0, (self.ended_at or self.started_at) - self.started_at)


def record_start(run: RunDirectory, num_ranks: int) -> None:
    """Begin an attempt; one before it that wrote no end is closed first."""
    attempts = read_attempts(run)
    if attempts and (last := attempts[-1]).end is None:
        _append(run, ended_at=last.ended_at, end="lost", job=last.job, restarts=last.restarts)
    start = Attempt(
        started_at=time.time(),
        host=os.environ.get("SLURM_JOB_NODELIST") or platform.node(),
        **this_job(),
        num_nodes=int(os.environ.get("SLURM_JOB_NUM_NODES", 1)),
        num_ranks=num_ranks,
        from_step=run.newest_checkpoint() or 0,
    )
    _append(run, **start.model_dump(exclude_defaults=True))


def record_end(run: RunDirectory, end: End, why: str = "") -> None:
    """End this job's attempt; where it began none, nothing is counted."""
    _append(run, ended_at=time.time(), end=end, **this_job(), **({"why": why} if why else {}))


def record_fallback(run: RunDirectory, from_step: int, num_unusable: int) -> None:
    """Note that this attempt goes on from ``from_step`` (0 = the start), since ``num_unusable`` newer checkpoints
    cannot be."""
    _append(run, from_step=from_step, num_unusable_checkpoints=num_unusable, **this_job())


def record_staging(run: RunDirectory, seconds: float) -> None:
    """Note how long this attempt's images were copied to its node, or waited for."""
    _append(run, staging_s=seconds, **this_job())


def record_usage(run: RunDirectory, energy_kwh: float | None, peak_memory_gb: float) -> None:
    """Note what this attempt has drawn so far."""
    _append(run, energy_kwh=energy_kwh, peak_memory_gb=peak_memory_gb, **this_job())


def this_job() -> dict[str, Any]:
    """Which job of SLURM's this process belongs to, and how often that was requeued."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID", "")
    return {"job": job, "restarts": int(os.environ.get("SLURM_RESTART_COUNT", 0))}


def has_begun(run: RunDirectory) -> bool:
    """Whether this start of this job has begun an attempt at the run."""
    job = this_job()
    return any((one.job, one.restarts) == (job["job"], job["restarts"]) for one in read_attempts(run))


def read_attempts(run: RunDirectory) -> list[Attempt]:
    """All attempts, in order; [] before the first. The last one is still going on if its ``end`` is None: then
    ``ended_at`` is the run's last sign of life."""
    try:
        text = read_file(run.attempts_path).decode(errors="replace")
    except OSError:  # not there yet, or unreadable, which the attempt itself will say
        return []
    attempts: list[Attempt] = []
    for line in text.split("\n")[:-1]:  # what follows the last newline is incomplete
        with contextlib.suppress(ValueError):  # a line that a full disk cut, or damage, costs a count, not the run
            fields = read_object(line)
            if "started_at" in fields:
                attempts.append(Attempt.model_validate(fields))
            elif attempts and (attempts[-1].job, attempts[-1].restarts) == (fields.get("job"), fields.get("restarts")):
                attempts[-1] = Attempt.model_validate(attempts[-1].model_dump() | fields)
    if attempts and attempts[-1].end is None:
        times = [attempts[-1].started_at]
        if (beat := read_beat(run)) is not None and beat.at:  # files that were copied have later dates
            times.append(beat.at)
        else:
            for path in (run.metrics_path, run.heartbeat_path, run.log_path):
                with contextlib.suppress(OSError):
                    times.append(path.stat().st_mtime)
        attempts[-1] = attempts[-1].model_copy(ended_at=max(times))
    return attempts


def device_hours(attempts: Sequence[Attempt]) -> float:
    """GPU-hours, or rank-hours where a run had no GPU: start-up, evaluation and lost steps included."""
    return sum(attempt.seconds * attempt.num_ranks for attempt in attempts) / 3600


def energy_kwh(attempts: Sequence[Attempt]) -> float | None:
    """Energy of all attempts; None where one of them could not read its counters."""
    drawn = [attempt.energy_kwh for attempt in attempts]
    return None if None in drawn or not drawn else sum(filter(None, drawn))


def peak_memory_gb(attempts: Sequence[Attempt]) -> float | None:
    """The most memory that one rank has taken in any attempt; None where none recorded it."""
    return max((a.peak_memory_gb for a in attempts if a.peak_memory_gb is not None), default=None)


def describe_skipped(attempts: Sequence[Attempt]) -> str:
    """Say which attempts could not go on from their run's newest checkpoint; "" where all could."""
    told = ""
    for attempt in attempts:
        if num := attempt.num_unusable_checkpoints:
            where = f"step {attempt.from_step}" if attempt.from_step else "its start"
            told = f"{num} checkpoint{'s' * (num > 1)} could not be gone on from: it went on from {where}, see its log"
    return told


def num_requeues(attempts: Sequence[Attempt]) -> int:
    """How often SLURM started one of this run's jobs again."""
    most: dict[str, int] = {}
    for attempt in attempts:
        most[attempt.job] = max(most.get(attempt.job, 0), attempt.restarts)
    return sum(most.values())


def _append(run: RunDirectory, **fields: Any) -> None:
    append_record(run.attempts_path, fields)
