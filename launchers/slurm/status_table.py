"""A grid's status as it is shown: a table of its runs, the hours that are left, and bad or slow nodes."""

import datetime
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from launchers.core.console import Excerpt
from launchers.core.plan import LONGEST_S
from launchers.core.run_names import describe
from launchers.slurm.grid_costs import describe_costs, sum_costs
from launchers.slurm.grid_status import JobStatus
from launchers.slurm.lost_starts import bad_nodes, read_starts
from launchers.slurm.submission_record import find_submissions, submissions_folder
from leaderboards.schemas.answers import JobState
from suite.spec.profile import Profile
from suite.store.run_status import name_state

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
_STRAGGLES = 0.5  # of the others' pace


def render_status(found: Sequence[JobStatus], profile: Profile, troubles: Sequence[str] = ()) -> RenderableType:
    """Render every run's state, what is left to do, and what goes wrong: the nodes' troubles, a line each."""
    names = describe([status.job.experiment for status in found])
    shown = in_order(found)[:_MAX_ROWS]
    numbers = (Column(title, justify="right") for title in ("step", "images/s", "ETA", "requeued"))
    table = Table("run", "state", "node", *numbers, "", box=box.SIMPLE_HEAD, pad_edge=False)
    for status in shown:
        words = [] if status.top1_percent is None else [f"top-1 {status.top1_percent:.2f} %"]
        table.add_row(
            names[status.job.experiment.id],
            Text(name_state(status.state), style=_STYLES[status.state]),
            status.node,
            status.steps,
            f"{status.metrics['images_per_s']:,.0f}" if status.keeps_pace and "images_per_s" in status.metrics else "",
            duration(status.remaining_s) if status.keeps_pace else "",
            str(status.num_requeues or ""),
            Excerpt("; ".join(filter(None, [*words, status.words]))),
        )
    hidden = f" ({len(found) - len(shown)} not shown)" if len(shown) < len(found) else ""
    warnings = (Excerpt(trouble, "yellow") for trouble in troubles)
    return Group(table, f"{summarize(found)}{hidden}", describe_costs(sum_costs(found, profile)), *warnings)


def in_order(found: Sequence[JobStatus]) -> list[JobStatus]:
    """Sort by what to look at first: failures, then what is running, last what is done."""
    order = list(_STYLES)
    return sorted(found, key=lambda status: order.index(status.state))


def summarize(found: Sequence[JobStatus]) -> str:
    """Count the states: ``12 runs: 1 failed, 2 running, 9 done``."""
    counts = Counter(status.state for status in found)
    words = ", ".join(f"{counts[state]} {name_state(state)}" for state in _STYLES if counts[state])
    return f"{len(found)} runs: {words}"


def duration(seconds: float | None) -> str:
    """Spell a time as ``1:02:03``; "" where none is known."""
    return "" if seconds is None else str(datetime.timedelta(seconds=round(min(seconds, LONGEST_S))))


def find_troubles(store: Path, found: Sequence[JobStatus]) -> list[str]:
    """Name the nodes that could not begin a job, with its log, and those that are much slower than others."""
    waiting = {status.job.experiment.id for status in found if status.goes_on}
    troubles = []
    for submission in find_submissions(store):
        if waiting.isdisjoint(submission.task_of):
            continue
        lost = read_starts(submissions_folder(store) / submission.name)
        bad = bad_nodes(lost)
        for node, starts in bad_nodes(lost, num_jobs=1).items():
            what = f"could not begin {len(starts)} jobs, and is left out" if node in bad else "lost a start"
            troubles.append(f"{node or 'one of several nodes'} {what}: {starts[-1].reason}; see {starts[-1].log}")
    return troubles + _name_stragglers(found)


def _name_stragglers(found: Sequence[JobStatus]) -> list[str]:
    """Name nodes at less than half the pace of others that train the same model at the same number of ranks."""
    rates: dict[object, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for status in found:
        rate = status.metrics.get("images_per_s")
        if status.keeps_pace and status.node and rate:
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
