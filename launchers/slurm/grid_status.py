"""``grid.py --status``: where every run of a suite stands, from its files, one ``squeue`` and one ``sacct``.

A run that SLURM still lists is never called failed: a job that was requeued, or lost its node, comes back.
"""

import datetime
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launchers.core.plan import Job, read_progress, read_run_statuses
from launchers.core.time_left import images_left
from launchers.slurm import queries as slurm
from launchers.slurm.lost_starts import LostStart, read_starts, read_tail
from launchers.slurm.queries import EndedJob, QueuedJob
from launchers.slurm.submission_record import cancel_mark, find_submissions, find_users, submissions_folder
from leaderboards.schemas.answers import JobState
from suite.store import attempts
from suite.store.attempts import Attempt
from suite.store.heartbeat import find_stall
from suite.store.run_status import RunStatus

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
_ERROR = re.compile(r"error|exception|no space|quota|oom|out of memory|killed|denied|exceeded", re.IGNORECASE)


@dataclass(frozen=True)
class JobStatus:
    """Where one run stands.

    ``waiting`` is for another run, ``pending`` for SLURM. ``detail`` says why it waits or failed; ``array`` is SLURM's,
    of a run that is in its queue; ``stall`` says how long a run has shown no sign of life that should have;
    ``passed_over`` tells of checkpoints that it could not go on from; hours are GPU-hours, or rank-hours on CPUs;
    energy and memory are None where they are unknown.
    """

    job: Job
    state: JobState
    detail: str = ""
    node: str = ""
    array: str = ""
    num_requeues: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    stall: str = ""
    passed_over: str = ""
    hours_used: float = 0.0
    energy_kwh: float | None = None
    peak_memory_gb: float | None = None
    top1_percent: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it is in the hands of SLURM, or of another grid."""
        return self.state in ("running", "requeued", "pending") or (self.state == "waiting" and bool(self.array))

    @property
    def has_failed(self) -> bool:
        """Whether it ended without a result that holds, or can never start."""
        return self.state in ("failed", "void", "blocked")

    @property
    def keeps_pace(self) -> bool:
        """Whether its latest rate is still true."""
        return self.state == "running" and not self.stall

    @property
    def words(self) -> str:
        """Why it waits, failed or stalled, and whether it went on from an older checkpoint."""
        return "; ".join(part for part in (self.stall, self.detail, self.passed_over) if part)

    @property
    def steps(self) -> str:
        return f"{self.metrics['step']:,} of {self.metrics['num_steps']:,}" if "step" in self.metrics else ""

    @property
    def remaining_s(self) -> float | None:
        """At the rate of the last steps; None where nothing was logged yet."""
        rate = self.metrics.get("images_per_s")
        return images_left(self.job, self.metrics) / rate if rate else None


def read_status(jobs: Sequence[Job], store: Path) -> list[JobStatus]:
    """Look up where each run stands, parents first; a parent that is not among them counts as finished.

    Raises:
        RunError: SLURM does not answer.
        RecordError: a submission cannot be read.
    """
    slurms_word = _SlurmsWord(store)
    found: dict[str, JobStatus] = {}
    for job, known in zip(jobs, read_run_statuses(jobs), strict=True):
        refined = slurms_word.refine(job, known)
        if refined.state == "waiting" and (first := known.waits_for[0]) in found:
            refined = replace(refined, detail=f"for {first} ({found[first].state})")
        found[job.experiment.id] = refined
    return list(found.values())


class _SlurmsWord:
    """The jobs of a store's submissions by (submission, task): queued ones, ended ones, and starts that were lost."""

    def __init__(self, store: Path) -> None:
        self._store, self._submissions = store, find_submissions(store)
        names = [submission.name for submission in self._submissions]
        users = find_users(store, self._submissions)
        queue = slurm.read_queue(users) if names else []
        queue.sort(key=lambda job: (job.state == "PD", int(job.job_id.partition("_")[0])), reverse=True)
        self._queue = {(job.submission, job.task): job for job in queue}  # of a chain the job that goes on now
        microseconds = [int(name.rpartition("-")[2], 16) for name in names]
        oldest = datetime.datetime.fromtimestamp(min(microseconds, default=0) / 1e6)
        since = (oldest - datetime.timedelta(days=1)).strftime("%Y-%m-%d")
        self._ended = slurm.read_ended(names, since, users) if names else {}
        starts = {name: read_starts(submissions_folder(store) / name) for name in names}
        self._lost = {(name, start.task): start for name, of_one in starts.items() for start in of_one}

    def refine(self, job: Job, known: RunStatus) -> JobStatus:
        """Compare a run's status with SLURM's word on its job, which only refines what is open."""
        if known.state == "done" and known.result is not None:
            result = known.result
            tried = attempts.read_attempts(job.directory) if result.num_unusable_checkpoints else []
            return JobStatus(
                job, "done", num_requeues=result.num_requeues, hours_used=result.device_hours,
                energy_kwh=result.energy_kwh, peak_memory_gb=result.peak_memory_gb,
                top1_percent=result.top1_percent, passed_over=attempts.describe_skipped(tried),
            )  # fmt: skip
        tried = attempts.read_attempts(job.directory)
        places = [(s.name, s.task_of[job.experiment.id]) for s in self._submissions if job.experiment.id in s.task_of]
        queued = next((self._queue[place] for place in reversed(places) if place in self._queue), None)
        common: dict[str, Any] = {
            "metrics": read_progress(job.directory),
            "num_requeues": attempts.num_requeues(tried),
            "hours_used": attempts.device_hours(tried),
            "energy_kwh": attempts.energy_kwh(tried),
            "peak_memory_gb": attempts.peak_memory_gb(tried),
            "passed_over": attempts.describe_skipped(tried),
            "array": queued.job_id.partition("_")[0] if queued else "",
        }
        if places:
            newest = next(s for s in reversed(self._submissions) if s.name == places[-1][0])
            job = replace(job, resources=newest.resources)
        if not known.is_open:
            see = f"; see {known.path}" if known.path else ""
            return JobStatus(job, known.state, known.reason + see, **common)
        if queued is not None:
            state, detail, node = _state_in_queue(queued, tried, self._lost.get((queued.submission, queued.task)))
            common["stall"] = find_stall(job.directory) if state == "running" else ""
            needs_parent = known.state == "waiting" and state != "running"
            return JobStatus(job, "waiting" if needs_parent else state, detail, node, **common)
        if known.state == "running":
            common["stall"] = find_stall(job.directory)
            return JobStatus(job, "running", _name_owner(tried), **common)
        last = next((place for place in reversed(places) if place in self._ended), None)
        last_word = self._ended[last].state if last else ""
        if last_word.startswith("CANCELLED") or (places and cancel_mark(self._store, places[-1][0]).exists()):
            return JobStatus(job, "cancelled", "the same command submits it again", **common)
        why_ended = _explain_end(self._ended[last], self._store, last[0]) if last else ""
        if known.state == "interrupted":
            own = known.reason or (tried[-1].why if tried else "")
            why = "; ".join(part for part in (own, "" if last_word == "COMPLETED" else why_ended) if part) or "killed"
            return JobStatus(job, "interrupted", f"{why}; the same command resumes it", **common)
        start = next((self._lost[place] for place in reversed(places) if place in self._lost), None)
        why = start.describe() if start else f"its job ended before it: {why_ended}" if why_ended else ""
        return JobStatus(job, known.state, why, **common)


def _name_owner(tried: Sequence[Attempt]) -> str:
    """Name the process that holds the claim of a run whose job SLURM does not list, as far as it is known."""
    if not tried or tried[-1].end is not None:
        return "held by another process"
    job = f" of job {tried[-1].job}, which has left SLURM's queue" if tried[-1].job else ""
    return f"held by a process on {tried[-1].host}{job}"


def _state_in_queue(queued: QueuedJob, tried: Sequence[Attempt], lost: LostStart | None) -> tuple[JobState, str, str]:
    """Read state, detail and node of a run whose job SLURM lists, the last start of which may have been lost."""
    if queued.state == "PD":
        waits = _explain_wait(queued.reason)
        if queued.num_restarts:
            why = tried[-1].why if tried else ""
            if lost is not None and (lost.job, lost.restarts) == (queued.job_id, queued.num_restarts - 1):
                reasons = {"held": _name_owner(tried), "node": lost.describe()}
                why = reasons.get(lost.kind, lost.reason)
            held = f"; SLURM holds it: {waits}" if waits != queued.reason or "held" in waits.lower() else ""
            return "requeued", (why or "its node failed, or a process died") + held, ""
        return "pending", waits, ""
    is_of_job = bool(tried) and (tried[-1].job, tried[-1].restarts) == (queued.job_id, queued.num_restarts)
    if is_of_job and tried[-1].end is None:
        return "running", f"job {queued.job_id}", queued.nodes
    return "pending", f"job {queued.job_id} has started", queued.nodes


def _explain_wait(reason: str) -> str:
    """Spell why SLURM lets a job wait, as far as that is not plain."""
    name = reason.strip("()").partition(",")[0]
    if name in _HELD:
        return f"{reason}: {_HELD[name]}"
    is_limit = "Limit" in name or re.match(r"(QOS|Assoc)(Max|Grp)", name)
    return f"{reason}: a limit of the account, partition or QOS" if is_limit else reason


def _explain_end(ended: EndedJob, store: Path, submission: str) -> str:
    """Spell why a job has ended that should have gone on: SLURM's word, the disk, and what stands last in its log."""
    where = f" on {ended.nodes}" if ended.nodes else ""
    parts = [f"{ended.state}{where}" + (f" ({_ENDED[ended.state]})" if ended.state in _ENDED else "")]
    if shutil.disk_usage(store).free < _FULL_BYTES:
        parts.append(f"the disk of {store} is full")
    log = submissions_folder(store) / submission / f"{ended.job_id}_0_log.out"
    if ended.state != "COMPLETED" and (lines := read_tail(log)):
        errors = [line for line in lines if _ERROR.search(line)]
        parts.append(f"{(errors or lines)[-1][:200]}; see {log}")
    return "; ".join(parts)
