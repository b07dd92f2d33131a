"""``grid.py --cluster slurm``, ``--status`` and ``--cancel``: submit what is missing, watch it, end it."""

import contextlib
import os
import pwd
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from launchers.command.grid_request import GridRequest, Outcome
from launchers.command.options import GridOptions, make_resources
from launchers.command.plan_report import print_cost, print_failures
from launchers.core.locks import is_at_work
from launchers.core.plan import Job, PlannedRun, make_jobs, make_plan
from launchers.slurm import queries as slurm
from launchers.slurm.grid_costs import make_answer
from launchers.slurm.grid_status import JobStatus, read_status
from launchers.slurm.status_table import find_troubles, render_status, summarize
from launchers.slurm.submission_record import cancel_mark, find_submissions, find_users, owner_of, submissions_folder
from launchers.slurm.submit import Submitter
from leaderboards.schemas.answers import Plan
from suite.base.errors import RunError, SpecError
from suite.base.exit_codes import Exit
from suite.base.files import naming_disk_errors, wait_for_lock
from suite.spec.profile import Profile
from suite.spec.resources import Resources

_POLL_S = 5.0
_MAX_REASONS = 10  # of runs that are left; --status shows all


def train(grid: GridRequest, console: Console) -> Outcome:
    """Submit every run that is neither finished nor failed nor in the queue; then show them until all have ended.

    Where a site allows few arrays at a time, what is left is submitted as these leave the queue.
    """
    options, site = grid.options, grid.options.site
    if not options.dry_run:
        slurm.check_there()
    resources = _resources(options, grid.profile)
    plan, tried = grid.plan(resources, console), Counter[str]()
    if options.dry_run:
        return Outcome(Exit.DONE, answer=_dry_run(grid, plan, console))
    while True:
        submitted = _submit_missing(grid, plan, tried, console)
        if options.detach:
            return Outcome(Exit.DONE)
        outcome = watch(grid, console, until_all_ended=True)
        if outcome.status == Exit.INTERRUPTED or not (site.max_arrays and submitted):
            return outcome
        tried.update(submitted)
        plan = make_plan(grid.experiments, options.runs, resources)


def _submit_missing(grid: GridRequest, plan: list[PlannedRun], tried: Counter[str], console: Console) -> list[str]:
    """Submit what is missing, but for runs that were tried as often as the site's chain is long; returns their ids."""
    options, site = grid.options, grid.options.site
    with _submitting(options.runs, console):  # of two grids, the second sees what the first has submitted
        missing, queued, num_left = _missing(grid, plan)
        missing = [run for run in missing if tried[run.job.experiment.id] < site.chain]
        free = max(0, site.max_arrays - len(set(queued.values()))) if site.max_arrays else None
        submitter = Submitter(missing, grid.suite, options, queued, free) if missing and free != 0 else None
        if submitter is not None:
            _check_owners(options.runs, missing)
            grid.make_store(console)
        grid.prepare(missing if submitter is not None else (), console)
        if submitter is not None:
            submitter.test()
        if not tried:
            grid.forget_failures(plan)
        if submitter is not None:
            refusal = submitter.submit()
            ids, num_jobs = ", ".join(submitter.job_ids), sum(map(len, submitter.arrays()))
            console.print(f"submitted {len(submitter.submitted)} runs as {num_jobs} jobs: array {ids}")
            if refusal:
                console.print(f"the leaderboard's job was refused ({refusal}): leaderboards/build.py builds it")
        elif missing:
            console.print(f"{site.max_arrays} arrays are in the queue, as many as max_arrays: the others follow them")
        else:
            console.print("nothing to submit")
        if num_left:
            done = "start this one again once they are done"
            console.print(f"{num_left} more need runs that another grid trains: {done}")
    return submitter.submitted if submitter is not None else []


def _check_owners(store: Path, missing: Sequence[PlannedRun]) -> None:
    """Refuse to submit what another user may have in the queue, on a cluster that does not show it."""
    wanted = {run.job.experiment.id for run in missing}
    for submission in find_submissions(store):
        owner = owner_of(store, submission.name)
        may_be_queued = not wanted.isdisjoint(submission.task_of) and not cancel_mark(store, submission.name).exists()
        if owner != os.getuid() and may_be_queued and slurm.hides_jobs():
            name = f"user {owner}"
            with contextlib.suppress(KeyError):
                name = pwd.getpwuid(owner).pw_name
            hidden = "this cluster shows nobody the jobs of others: they may be in the queue"
            cure = f"Ask {name} to cancel them, or choose another --runs."
            raise RunError(f"{name} has submitted runs of this grid to {store}, and {hidden}. {cure}")


def watch(grid: GridRequest, console: Console, until_all_ended: bool = False) -> Outcome:
    """Show every run's state, once or until all have ended; Ctrl-C leaves the jobs alone."""
    options = grid.options
    jobs = jobs_of(grid)
    if not (options.watch or until_all_ended):
        found = read_status(jobs, options.runs)
        troubles = find_troubles(options.runs, found)
        console.print(render_status(found, grid.profile, troubles))
        is_over = not _goes_on(grid, found)
        answer = make_answer(grid.suite.name, grid.profile_name, found, grid.profile, troubles, is_over)
        return Outcome(Exit.DONE, answer=answer)
    try:
        found = _follow(grid, jobs, console)
    except KeyboardInterrupt:
        console.print("left; the jobs go on. --status shows them, --cancel ends them")
        return Outcome(Exit.DONE if options.status else Exit.INTERRUPTED)
    failed = [(status.job, status.detail) for status in found if status.has_failed]
    print_failures(console, failed)
    left = [status for status in found if status.state != "done" and not status.has_failed]
    if left:
        console.print(f"{len(left)} runs are not done; the same command goes on with them:", style="yellow")
    for words in list(dict.fromkeys(status.words for status in left if status.words))[:_MAX_REASONS]:
        console.print(f"  {words}", soft_wrap=True)
    return Outcome(Exit.FAILED if failed or left else Exit.DONE, is_over=not options.status)


def cancel(grid: GridRequest, console: Console) -> int:
    """End all jobs of this suite's profile; what they have trained stays."""
    slurm.check_there()
    slurm.speak_to(grid.options.site)
    store = grid.options.runs
    wanted = (grid.suite.name, grid.profile_name)
    with _submitting(store, console):  # else what another grid is submitting right now would stay
        ours = [s for s in find_submissions(store) if (s.suite, s.profile) == wanted]
        names = [submission.name for submission in ours]
        marks = [mark for name in names if not (mark := cancel_mark(store, name)).exists()]
        for mark in marks:  # first: a job that ends meanwhile must not come back
            mark.touch()
        try:
            num_jobs = slurm.cancel(names, [s.leaderboard_name for s in ours], find_users(store, ours))
        except RunError:
            for mark in marks:
                mark.unlink(missing_ok=True)
            raise
    console.print(f"cancelled {num_jobs} jobs; what is trained stays, and the same grid goes on from there")
    return Exit.DONE


def _submitting(store: Path, console: Console) -> contextlib.AbstractContextManager[object]:
    """Be the only one who submits to this store, or cancels there."""
    folder = submissions_folder(store)
    with naming_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        what = "another grid is submitting to this store: waiting for it"
        return wait_for_lock(folder / "submit.lock", console.print, what)


def _follow(grid: GridRequest, jobs: list[Job], console: Console) -> list[JobStatus]:
    """Poll until no run is in SLURM's hands any more; what SLURM does not answer is asked again."""
    said, troubles = "", list[str]()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            try:
                found = read_status(jobs, grid.options.runs)
            except RunError as error:  # the controller restarts
                console.print(f"{error}")
                time.sleep(_POLL_S)
                continue
            known, troubles = troubles, find_troubles(grid.options.runs, found)
            if console.is_terminal:
                live.update(render_status(found, grid.profile, troubles), refresh=True)
            elif new := [trouble for trouble in troubles if _place_of(trouble) not in map(_place_of, known)]:
                console.print("\n".join(new), soft_wrap=True)
            elif (line := summarize(found)) != said:
                console.print(said := line)
            if not _goes_on(grid, found):
                return found
            time.sleep(_POLL_S)


def _goes_on(grid: GridRequest, found: Sequence[JobStatus]) -> bool:
    """Whether runs are in the hands of SLURM or of another process; to who only looks, also of a grid at work here."""
    if grid.options.status and is_at_work(grid.options.runs, grid.suite.name, grid.profile_name):
        return True
    return any(status.goes_on for status in found)


def _place_of(trouble: str) -> str:
    """Read what a trouble is about: its node and kind, not its numbers, which change."""
    return " ".join(trouble.split()[:3])


def _dry_run(grid: GridRequest, plan: list[PlannedRun], console: Console) -> Plan:
    open_runs = [run for run in plan if run.status.is_open]
    site = grid.options.site
    if open_runs:
        submitter = Submitter(open_runs, grid.suite, grid.options)
        console.print(submitter.script(), soft_wrap=True)
        if slurm.ask("squeue", "--me", "--noheader").returncode == 0:
            submitter.test()
        else:
            console.print("no SLURM answers here: SLURM was not asked whether it would take these jobs", style="yellow")
        console.print(submitter.describe_order())
    num_jobs = site.concurrency or -(-len(open_runs) // site.runs_per_job)
    num_devices = max(1, num_jobs) * plan[0].job.resources.num_ranks
    return print_cost(console, grid.suite, grid.profile_name, grid.profile, plan, num_devices)


def _missing(grid: GridRequest, plan: Sequence[PlannedRun]) -> tuple[list[PlannedRun], dict[str, str], int]:
    """Select what to submit: neither finished, failed, claimed nor in the queue, nor in need of a run that failed.

    Returns:
        These runs; the array of each run that is in the queue; how many need a run that is trained outside SLURM.
    """
    missing, queued = dict[str, PlannedRun](), dict[str, str]()
    outside, left = set[str](), set[str]()
    for run, status in zip(plan, read_status([run.job for run in plan], grid.options.runs), strict=True):
        experiment = run.job.experiment
        parents = {parent.id for parent in experiment.parents}
        if not run.status.is_open or status.state == "done":  # which the plan may not know yet
            continue
        if status.array and not parents & set(missing):  # else SLURM starts it too early: its parent left the queue
            queued[experiment.id] = status.array
        elif status.state == "running":
            outside.add(experiment.id)
        elif parents & (outside | left):
            left.add(experiment.id)
        else:
            missing[experiment.id] = run
    return list(missing.values()), queued, len(left)


def jobs_of(grid: GridRequest) -> list[Job]:
    """Make the jobs of the chosen experiments, as they would be submitted."""
    return make_jobs(grid.experiments, grid.options.runs, _resources(grid.options, grid.profile))


def _resources(options: GridOptions, profile: Profile) -> Resources:
    """The resources of one run: on GPUs a rank for each that the request gives a node."""
    site, on_gpu = options.site, profile.device == "gpu"
    slurm.speak_to(site)
    if on_gpu and options.ranks_per_node and options.cluster == "slurm":
        raise SpecError("--ranks-per-node is for CPUs; a GPU profile has a rank on each GPU: --gpus-per-node")
    if not on_gpu and site.node_gpus and options.site_path is None:
        raise SpecError("GPUs are for GPU profiles; this one trains on CPUs: --ranks-per-node, or --device gpu")
    num_ranks = site.nodes * ((on_gpu and site.node_gpus) or options.ranks_per_node or 1)
    return make_resources(options, profile, num_ranks, site.cpus_per_task or (8 if on_gpu else 1))
