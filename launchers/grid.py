"""The main command: plan a suite's grid, train what is missing, build its leaderboard.

    python launchers/grid.py --suite sample_efficiency

The same command again goes on where the last one ended. What a node calls is ``suite.execute``, never this file.
"""

import suite.base.ctrl_c  # noqa: F401  # isort: skip  # before what takes a while
import contextlib
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console

from launchers.command.command_line import parse_options
from launchers.command.container import INSIDE, go_inside
from launchers.command.custom_models import check
from launchers.command.freeze import freeze
from launchers.command.grid_request import GridRequest, Outcome
from launchers.command.options import GridOptions, make_resources
from launchers.command.plan_report import print_cost, print_failures, print_suites
from launchers.command.resolved_profile import print_resolved
from launchers.command.tune import Tries, describe_tuning
from launchers.command.until_decided import train_until
from launchers.core.console import SafeConsole
from launchers.core.fork_server import ForkServer
from launchers.core.locks import hide_work, show_work
from launchers.core.plan import Job
from launchers.live.serving import serving
from launchers.local.display import Display
from launchers.local.gpu_sharing import SharedGpus
from launchers.local.pool import Gpus, LocalPool, environment_of_runs
from launchers.tracking.following import following
from leaderboards.build import build
from suite.base.arguments import program
from suite.base.commit import commit
from suite.base.errors import RunError, SpecError, SuiteError
from suite.base.exit_codes import Exit
from suite.spec.profile import Profile
from suite.spec.resources import Resources

_POLL_S = 0.25


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns one of the exit statuses of ``suite.base.exit_codes``."""
    console, errors = (SafeConsole(stderr=stderr) for stderr in (False, True))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is a Ctrl-C: checkpoints first
    try:
        options = parse_options(arguments)
        with serving(options, sys.argv[1:] if arguments is None else arguments, console):
            try:
                return _answer(options, errors) if options.json else _run(options, console).status
            finally:
                hide_work()  # the page stays
    except KeyboardInterrupt:
        errors.print(f"{program('grid', 'grid.py')}: interrupted; the same command goes on from here")
        return Exit.INTERRUPTED
    except SuiteError as error:
        errors.print(f"{program('grid', 'grid.py')}: {error}", style="red", soft_wrap=True)
        return Exit.MISUSE if isinstance(error, SpecError) else Exit.FAILED
    except OSError as error:  # the output's: what a run or a store refuses is a SuiteError
        with contextlib.suppress(OSError):
            errors.print(f"grid.py: {error}", style="red", soft_wrap=True)
        with contextlib.suppress(OSError):  # a full disk or a closed pipe would refuse Python's last flush again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED


def _answer(options: GridOptions, errors: Console) -> int:
    """Look, and answer as JSON: it alone goes to standard output, all that is meant for people to the other one."""
    with contextlib.redirect_stdout(sys.stderr):
        outcome = _run(options, errors)
    assert outcome.answer is not None
    print(json.dumps(outcome.answer.model_dump(mode="json"), indent=1, allow_nan=False))  # escapes all but ASCII
    return outcome.status


def _run(options: GridOptions, console: Console) -> Outcome:
    if options.list_suites:
        return Outcome(Exit.DONE, answer=print_suites(console))
    if options.check:
        checked = check(options, console)
        return Outcome(Exit.DONE if checked.is_sound else Exit.FAILED, answer=checked)
    if options.site_check:
        from launchers.slurm.site_check import check_site  # imports submitit

        return Outcome(Exit(check_site(options, console)))
    if options.until is not None and not options.starts_nothing:
        return Outcome(Exit(train_until(options, lambda each: _run(each, console).status, console)))
    grid = GridRequest.of(options)
    if options.tune:
        console.print(describe_tuning(grid), soft_wrap=True)
    if (tries := Tries.before(grid)) is not None:
        if options.starts_nothing or options.retry_failed or not tries.record():  # else they ended after --detach
            outcome = _carry_out(tries.grid, console)
            if not outcome.is_over or not tries.record():
                return outcome
        grid = GridRequest.of(options)
    outcome = _carry_out(grid, console)
    if outcome.is_over:
        build(options.suite or "", grid.profile_name, options.runs, options.seeds)
    return outcome


def _carry_out(grid: GridRequest, console: Console) -> Outcome:
    options = grid.options
    if options.show:
        shown = print_resolved(console, grid.suite, grid.profile_name, grid.experiments)
        return Outcome(Exit.DONE, answer=shown)
    if options.freeze is not None:
        freeze(grid, options.freeze, console)
        return Outcome(Exit.DONE)
    if options.cluster == "local" and options.site.container and not (options.starts_nothing or INSIDE in os.environ):
        from launchers.slurm.code_snapshot import Snapshot

        code = Snapshot(options.runs)
        code.write()
        go_inside(options, code.folder, grid.profile.device == "gpu")
    if options.cluster == "slurm" or options.status or options.cancel:
        from launchers.slurm import train_on_slurm as on_slurm  # imports submitit

        if options.cancel:
            return Outcome(Exit(on_slurm.cancel(grid, console)))
        return on_slurm.watch(grid, console) if options.status else on_slurm.train(grid, console)
    return _train_here(grid, console)


def _train_here(grid: GridRequest, console: Console) -> Outcome:
    """Carry the grid out on this machine."""
    options = grid.options
    gpus = _visible_gpus() if grid.profile.device == "gpu" else []
    max_parallel, resources = _resources(options, grid.profile, len(gpus))
    plan = grid.plan(resources, console)
    if options.dry_run:
        devices = max_parallel * resources.num_ranks
        cost = print_cost(console, grid.suite, grid.profile_name, grid.profile, plan, devices)
        return Outcome(Exit.DONE, answer=cost)
    to_do = [run for run in plan if run.status.is_open]
    if to_do:
        if grid.profile.device == "gpu":
            _check_gpus(gpus, resources.num_ranks)
        commit()  # says here, where somebody looks, if git cannot tell it
        grid.make_store(console)
        show_work(options.runs, grid.suite.name, grid.profile_name)
    grid.prepare(to_do, console)
    grid.forget_failures(plan)
    failed = [(run.job, run.problem) for run in plan if run.problem]
    suite, ids = options.suite or "", [experiment.id for experiment in grid.experiments]
    say = functools.partial(console.print, style="yellow", soft_wrap=True)
    with following(resources.track, options.runs, suite, grid.profile_name, ids, say) as report:
        if to_do:
            sharing = SharedGpus(gpus, console) if options.runs_per_gpu else contextlib.nullcontext(Gpus(gpus))
            with sharing as handed_out, _fork_server(resources) as server:
                failed = _watch_pool(LocalPool(plan, max_parallel, handed_out, server), report, console)
    print_failures(console, failed)
    return Outcome(Exit.FAILED if failed else Exit.DONE, is_over=True)


def _fork_server(resources: Resources) -> contextlib.AbstractContextManager[ForkServer | None]:
    """Make what forks runs: on Linux alone they become this process's children; torchrun starts several ranks."""
    if resources.num_ranks > 1 or sys.platform != "linux":
        return contextlib.nullcontext()
    return ForkServer(resources, environment_of_runs(resources))


def _resources(options: GridOptions, profile: Profile, num_gpus: int) -> tuple[int, Resources]:
    """Choose how many runs go at once, and each one's share of the machine."""
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if options.runs_per_gpu and profile.device == "cpu":
        raise SpecError("--runs-per-gpu: this profile trains on CPUs; --max-parallel says how many runs go at once")
    slots = num_cores if profile.device == "cpu" else num_gpus * (options.runs_per_gpu or 1)
    num_ranks = options.ranks_per_node or 1
    max_parallel = options.max_parallel or max(1, slots // num_ranks)
    threads = max(1, num_cores // (max_parallel * num_ranks))
    return max_parallel, make_resources(options, profile, num_ranks, threads)


def _check_gpus(gpus: Sequence[str], num_ranks: int) -> None:
    """Check that there are GPUs for the ranks of one run, each of which needs one of its own."""
    if not gpus:
        from suite.training.accelerator import missing_gpu  # imports torch

        raise RunError(missing_gpu())
    if num_ranks > len(gpus):
        cure = f"use --ranks-per-node {len(gpus)} or less, or another machine"
        raise RunError(f"torch sees {len(gpus)} of the {num_ranks} GPUs that a run's ranks need, one each: {cure}")


def _watch_pool(pool: LocalPool, report: Callable[[], None], console: Console) -> list[tuple[Job, str]]:
    """Train, and return what failed, with the reason; Ctrl-C lets every run write its checkpoint."""
    try:
        with Display(pool, console) as display:
            while pool.poll():
                display.update()
                report()
                time.sleep(_POLL_S)
            display.update()
    except KeyboardInterrupt:
        console.print("stopping: every run writes its checkpoint")
        pool.stop()
        raise
    return [(run.job, run.problem) for run in pool.runs if run.state == "failed"]


def _visible_gpus() -> list[str]:
    from suite.training.accelerator import gpu_names  # imports torch

    return gpu_names()


if __name__ == "__main__":
    sys.exit(main())
