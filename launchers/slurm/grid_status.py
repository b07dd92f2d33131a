"""``grid.py --status``: where every run of a suite stands, from its files, one ``squeue`` and one ``sacct``.

A run that SLURM still lists is never called failed: a job that was requeued, or lost its node, comes back.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from launchers.core.console import Excerpt
from launchers.core.plan import Job, read_run_statuses
from launchers.core.progress import LONGEST_S, read_progress
from launchers.core.run_names import describe
from launchers.slurm import queries as slurm
from launchers.slurm.lost_starts import LostStart, read_starts
from launchers.slurm.queries import EndedJob, QueuedJob
from launchers.slurm.reasons import explain_end, explain_wait
from launchers.slurm.submission import Submission, cancel_mark, find_submissions, find_users, submissions_folder
from suite.cost.costs import write_hours
from suite.spec.profile import Profile
from suite.store import attempts, run_status
from suite.store.attempts import Attempt
from suite.store.heartbeat import find_silence
from suite.store.run_status import RunStatus

JobState = Literal[run_status.State, "requeued", "pending", "cancelled"]

_STYLES: dict[JobState, str] = {
    "failed": "bold red",
    "void": "bold red",
    "blocked": "red",
    "running": "bold cyan",
    "requeued": "yellow",
    "pending": "dim",
    "waiting": "dim",
    "cancelled": "magenta",
    "interrupted": "yellow",
    "new": "dim",
    "done": "green",
}
_MAX_ROWS = 60


@dataclass(frozen=True)
class JobStatus:
    """Where one run stands.

    ``waiting`` is for another run, ``pending`` for SLURM. ``detail`` says why it waits or failed; ``array`` is SLURM's,
    of a run that is in its queue; ``silence`` says how long a run has shown no sign of life that should have;
    ``passed_over`` tells of checkpoints that it could not go on from; hours are GPU-hours, or rank-hours on CPUs.
    """

    job: Job
    state: JobState
    detail: str = ""
    node: str = ""
    array: str = ""
    num_requeues: int = 0
    metrics: dict[str, float] | None = None
    silence: str = ""
    passed_over: str = ""
    hours_used: float = 0.0
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
        return self.state == "running" and not self.silence

    @property
    def words(self) -> str:
        """Why it waits, failed or is silent, and whether it went on from an older checkpoint."""
        return "; ".join(part for part in (self.silence, self.detail, self.passed_over) if part)

    @property
    def steps(self) -> str:
        metrics = self.metrics or {}
        return f"{metrics['step']:,} of {metrics['num_steps']:,}" if "step" in metrics else ""

    @property
    def remaining_s(self) -> float | None:
        """At the rate of the last steps; None where nothing was logged yet."""
        metrics = self.metrics or {}
        if not metrics.get("images_per_s"):
            return None
        images = (metrics["num_steps"] - metrics["step"]) * self.job.experiment.recipe.batch_size
        return float(images / metrics["images_per_s"])


def read_status(jobs: Sequence[Job], store: Path) -> list[JobStatus]:
    """Look up where each run stands; a parent that is not among them counts as finished.

    Args:
        jobs: parents before those that need them.

    Raises:
        RunError: SLURM does not answer.
        RecordError: a submission cannot be read.
    """
    submissions = find_submissions(store)
    users = find_users(store, submissions)
    queue = {(job.submission, job.task): job for job in slurm.read_queue(users)} if submissions else {}
    since = _oldest_date(submissions)
    ended = slurm.read_ended([s.name for s in submissions], since, users) if submissions else {}
    folders = {s.name: submissions_folder(store) / s.name for s in submissions}
    lost = {(name, start.task): start for name, folder in folders.items() for start in read_starts(folder)}
    found: dict[str, JobStatus] = {}
    for job, known in zip(jobs, read_run_statuses(jobs), strict=True):
        refined = _refine(job, known, store, submissions, queue, ended, lost)
        if refined.state == "waiting" and (first := known.waits_for[0]) in found:
            refined = replace(refined, detail=f"for {first} ({found[first].state})")
        found[job.experiment.id] = refined
    return list(found.values())


def _refine(
    job: Job,
    known: RunStatus,
    store: Path,
    submissions: Sequence[Submission],
    queue: Mapping[tuple[str, int], QueuedJob],
    ended: Mapping[tuple[str, int], EndedJob],
    lost: Mapping[tuple[str, int], LostStart],
) -> JobStatus:
    """Compare a run's status with SLURM's word on its job, which only refines what is open."""
    if known.state == "done" and known.result is not None:
        return JobStatus(
            job, "done", num_requeues=known.result.num_requeues, hours_used=known.result.device_hours,
            top1_percent=known.result.top1_percent,
            passed_over=attempts.tell_passed_over(attempts.read_attempts(job.directory))
            if known.result.num_unusable_checkpoints
            else "",
        )  # fmt: skip
    tried = attempts.read_attempts(job.directory)
    places = [(s.name, s.task_of[job.experiment.id]) for s in submissions if job.experiment.id in s.task_of]
    queued = next((queue[place] for place in reversed(places) if place in queue), None)
    common: dict[str, Any] = {
        "metrics": read_progress(job.directory),
        "num_requeues": attempts.num_requeues(tried),
        "hours_used": attempts.device_hours(tried),
        "passed_over": attempts.tell_passed_over(tried),
        "array": queued.job_id.partition("_")[0] if queued else "",
    }
    if places:
        newest = next(s for s in reversed(submissions) if s.name == places[-1][0])
        job = replace(job, resources=newest.resources)
    if not known.is_open:
        see = f"; see {known.path}" if known.path else ""
        return JobStatus(job, known.state, known.reason + see, **common)
    if queued is not None:
        state, detail, node = _state_in_queue(queued, tried, lost.get((queued.submission, queued.task)))
        common["silence"] = find_silence(job.directory) if state == "running" else ""
        is_held = known.state == "waiting" and state != "running"
        return JobStatus(job, "waiting" if is_held else state, detail, node, **common)
    if known.state == "running":
        common["silence"] = find_silence(job.directory)
        return JobStatus(job, "running", _name_holder(tried), **common)
    last = next((place for place in reversed(places) if place in ended), None)
    last_word = ended[last].state if last else ""
    is_marked = bool(places) and cancel_mark(store, places[-1][0]).exists()
    if last_word.startswith("CANCELLED") or is_marked:
        return JobStatus(job, "cancelled", "the same command submits it again", **common)
    why_ended = explain_end(ended[last], store, last[0]) if last else ""
    if known.state == "interrupted":
        own = known.reason or (tried[-1].why if tried else "")
        why = "; ".join(part for part in (own, "" if last_word == "COMPLETED" else why_ended) if part) or "killed"
        return JobStatus(job, "interrupted", f"{why}; the same command resumes it", **common)
    start = next((lost[place] for place in reversed(places) if place in lost), None)
    why = start.describe() if start else f"its job ended before it: {why_ended}" if why_ended else ""
    return JobStatus(job, known.state, why, **common)


def _name_holder(tried: Sequence[Attempt]) -> str:
    """Name the process that holds the claim of a run whose job SLURM does not list, as far as it is known."""
    if not tried or tried[-1].end is not None:
        return "held by another process"
    job = f" of job {tried[-1].job}, which has left SLURM's queue" if tried[-1].job else ""
    return f"held by a process on {tried[-1].host}{job}"


def _describe_lost(lost: LostStart, tried: Sequence[Attempt]) -> str:
    return _name_holder(tried) if lost.kind == "held" else lost.describe() if lost.kind == "node" else lost.reason


def _state_in_queue(queued: QueuedJob, tried: Sequence[Attempt], lost: LostStart | None) -> tuple[JobState, str, str]:
    """Read state, detail and node of a run whose job SLURM lists, the last start of which may have been lost."""
    if queued.state == "PD":
        waits = explain_wait(queued.reason)
        if queued.num_restarts:
            is_lost = lost is not None and (lost.job, lost.restarts) == (queued.job_id, queued.num_restarts - 1)
            why = _describe_lost(lost, tried) if lost is not None and is_lost else tried[-1].why if tried else ""
            held = f"; SLURM holds it: {waits}" if waits != queued.reason or "held" in waits.lower() else ""
            return "requeued", (why or "its node failed, or a process died") + held, ""
        return "pending", waits, ""
    is_of_job = bool(tried) and (tried[-1].job, tried[-1].restarts) == (queued.job_id, queued.num_restarts)
    if is_of_job and tried[-1].end is None:
        return "running", f"job {queued.job_id}", queued.nodes
    return "pending", f"job {queued.job_id} has started", queued.nodes


def _oldest_date(submissions: Sequence[Submission]) -> str:
    """Choose since when accounting is asked: the day before the first submission."""
    microseconds = [int(submission.name.rpartition("-")[2], 16) for submission in submissions]
    oldest = datetime.datetime.fromtimestamp(min(microseconds, default=0) / 1e6)
    return (oldest - datetime.timedelta(days=1)).strftime("%Y-%m-%d")


class Need:
    """GPU-hours (rank-hours) that unfinished runs still need: by the rate they log, or by FLOPs before that."""

    def __init__(self, profile: Profile) -> None:
        self._rate = profile.sustained_flops
        self._by_flops: dict[str, float] = {}

    def hours(self, status: JobStatus) -> float:
        if status.state == "done":
            return 0.0
        if status.remaining_s is not None:
            return status.remaining_s * status.job.resources.num_ranks / 3600
        arm = status.job.experiment.arm_id
        if arm not in self._by_flops:
            from launchers.core.plan_cost import run_flops

            flops = run_flops(status.job.experiment, status.job.resources)
            self._by_flops[arm] = flops / self._rate / 3600
        return self._by_flops[arm]

    def describe(self, found: Sequence[JobStatus], profile: Profile) -> str:
        """Say in one line what the runs have used, and what they still need."""
        unit = "GPU" if profile.device == "gpu" else "rank"
        used, needed = sum(s.hours_used for s in found), sum(self.hours(s) for s in found)
        return f"{unit}-hours: {write_hours(used)} used, {write_hours(needed)} needed"


def render_status(
    found: Sequence[JobStatus], profile: Profile, need: Need, troubles: Sequence[str] = ()
) -> RenderableType:
    """Render every run's state, what is left to do, and what goes wrong.

    Args:
        found: status of each run.
        profile: profile, which says on what hours are counted.
        need: hours that are left.
        troubles: troubles of nodes, a line each.
    """
    names = describe([status.job.experiment for status in found])
    shown = in_order(found)[:_MAX_ROWS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("run", "state", "node", "step", "images/s", "ETA", "requeued"):
        table.add_column(title, justify="right" if title in ("step", "images/s", "ETA", "requeued") else "left")
    table.add_column("")
    for status in shown:
        experiment, metrics = status.job.experiment, status.metrics or {}
        words = [] if status.top1_percent is None else [f"top-1 {status.top1_percent:.2f} %"]
        table.add_row(
            names[experiment.id],
            Text(status.state, style=_STYLES[status.state]),
            status.node,
            status.steps,
            f"{metrics['images_per_s']:,.0f}" if status.keeps_pace and "images_per_s" in metrics else "",
            duration(status.remaining_s) if status.keeps_pace else "",
            str(status.num_requeues or ""),
            Excerpt("; ".join(filter(None, [*words, status.words]))),
        )
    hidden = f" ({len(found) - len(shown)} not shown)" if len(shown) < len(found) else ""
    warnings = [Excerpt(trouble, "yellow") for trouble in troubles]
    return Group(table, f"{summarize(found)}{hidden}", need.describe(found, profile), *warnings)


def in_order(found: Sequence[JobStatus]) -> list[JobStatus]:
    """Sort by what to look at first: failures, then what is running, last what is done."""
    order = list(_STYLES)
    return sorted(found, key=lambda status: order.index(status.state))


def summarize(found: Sequence[JobStatus]) -> str:
    """Count the states: ``12 runs: 1 failed, 2 running, 9 done``."""
    counts = Counter(status.state for status in found)
    return f"{len(found)} runs: {', '.join(f'{counts[state]} {state}' for state in _STYLES if counts[state])}"


def duration(seconds: float | None) -> str:
    """Spell a time as ``1:02:03``; "" where none is known."""
    return "" if seconds is None else str(datetime.timedelta(seconds=round(min(seconds, LONGEST_S))))
