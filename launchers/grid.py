"""The main command: plan a suite's grid, train what is missing, build its leaderboard.

    python launchers/grid.py --suite sample_efficiency

The same command again goes on where the last one ended. What a node calls is ``suite.execute``, never this file.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from rich.console import Console

from imagesets.prepared import make_ready
from launchers.display import Display
from launchers.local import LocalPool
from launchers.plan import Job, PlannedRun, in_slots, make_plan, select
from launchers.report import print_cost, print_failures, print_plan, print_suites
from leaderboards.build import build, positive
from suite.errors import RunError, SpecError, SuiteError
from suite.records import RunDirectory
from suite.spec import Profile, Resources, StorageFormat, Suite
from suite.suites import get_suite, list_suites

EXIT_FAILED = 1
EXIT_MISUSE = 2
EXIT_INTERRUPTED = 130
_POLL_S = 0.25


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="grid.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--suite", metavar="NAME", help="which table to fill; --list shows all")
    parser.add_argument(
        "--profile", default="laptop", help="laptop (default), gpu, paper, or smoke: seconds, no meaning"
    )
    parser.add_argument(
        "--seeds", type=positive, default=1, metavar="N", help="seeds 0 to N-1 of every cell (default 1)"
    )
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="KEY=VALUE",
        help="train only these, such as model=deit_micro train_fraction=0.1",
    )  # fmt: skip
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="run store (default: runs)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR",
        help="where image sets are kept (default: $IMAGESETS_DIR, else the user's cache)",
    )  # fmt: skip
    parser.add_argument(
        "--loader", choices=get_args(StorageFormat), default="memory",
        help="format to read images from, made by datasets/prepare.py (default: memory)",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="threads a rank decodes images with (default: its cores)"
    )
    parser.add_argument("--skip-corrupt", action="store_true", help="go on without images that cannot be decoded")
    parser.add_argument(
        "--max-parallel", type=positive, metavar="N", help="runs at once (default: one per core or GPU)"
    )
    parser.add_argument(
        "--ranks-per-node", type=positive, default=1, metavar="N", help="processes of one run (default 1)"
    )
    parser.add_argument(
        "--micro-batch", type=positive, metavar="N", help="images a rank holds at once (default: its share)"
    )
    parser.add_argument("--zero-stage", type=int, choices=range(4), default=0, help="DeepSpeed's ZeRO (default 0)")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="another precision than the recipe's: other runs")
    parser.add_argument("--retry-failed", action="store_true", help="start failed runs again, from their checkpoints")
    parser.add_argument("--dry-run", action="store_true", help="show plan and cost, start nothing")
    parser.add_argument("--list", action="store_true", help="show all suites")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all done, 1 something failed, 2 misuse, 130 interrupted."""
    options = parse(arguments)
    console, errors = (Console(markup=False, highlight=False, stderr=stderr) for stderr in (False, True))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is a Ctrl-C: checkpoints first
    try:
        if options.list:
            print_suites(console)
            return 0
        if options.suite is None:
            raise SpecError(f"--suite NAME is missing. Valid: {', '.join(list_suites())}.")
        return _grid(options, get_suite(options.suite), console)
    except KeyboardInterrupt:
        errors.print("grid.py: interrupted; the same command goes on from here")
        return EXIT_INTERRUPTED
    except SuiteError as error:
        errors.print(f"grid.py: {error}", style="red", soft_wrap=True)
        return EXIT_MISUSE if isinstance(error, SpecError) else EXIT_FAILED


def _grid(options: argparse.Namespace, suite: Suite, console: Console) -> int:
    profile_name = f"{options.profile}-{options.precision}" if options.precision else options.profile
    profile = suite.profile(profile_name)
    experiments = select(profile.experiments(options.seeds), options.only)
    _check_store(options.runs)
    gpus = _visible_gpus() if profile.device == "gpu" else []
    max_parallel, resources = _resources(options, profile, len(gpus))
    for experiment in experiments:
        resources.split_batch(experiment.recipe.batch_size)
    if options.retry_failed and not options.dry_run:
        for experiment in experiments:
            RunDirectory.of(options.runs, experiment).forget_failure()
    plan = make_plan(experiments, options.runs, resources)
    print_plan(console, suite, profile_name, profile, plan, options.runs)
    if options.dry_run:
        print_cost(console, profile, plan, max_parallel)
        return 0
    failed = [(run.job, run.problem) for run in plan if run.status == "failed"]
    if any(run.status not in ("done", "failed") for run in plan):
        if profile.device == "gpu" and not gpus:
            raise RunError("this profile needs a GPU, and torch sees none: use --profile laptop, or another machine")
        for dataset in sorted({experiment.dataset for experiment in experiments}):
            make_ready(dataset, options.loader, options.data_dir)
        failed = _train(plan, LocalPool(plan, max_parallel, gpus), console)
    print_failures(console, failed)
    build(suite.name, profile_name, options.runs, options.seeds)
    return EXIT_FAILED if failed else 0


def _check_store(store: Path) -> None:
    if store.exists() and not store.is_dir():
        raise SpecError(f"--runs {store} is a file; expected a folder, or a name that is free")


def _resources(options: argparse.Namespace, profile: Profile, num_gpus: int) -> tuple[int, Resources]:
    """How many runs at once, and each one's share of the machine."""
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    slots = num_cores if profile.device == "cpu" else num_gpus
    max_parallel = options.max_parallel or max(1, slots // options.ranks_per_node)
    resources = in_slots(
        profile,
        max_parallel,
        num_cores,
        num_ranks=options.ranks_per_node,
        micro_batch_size=options.micro_batch,
        zero_stage=options.zero_stage,
        data_dir=str(options.data_dir) if options.data_dir else None,
        loader=options.loader,
        num_workers=options.workers or 0,
        skip_corrupt=options.skip_corrupt,
    )
    return max_parallel, resources


def _train(plan: Sequence[PlannedRun], pool: LocalPool, console: Console) -> list[tuple[Job, str]]:
    """Carry the plan out and return what failed, with the reason; Ctrl-C lets every run write its checkpoint."""
    try:
        with Display(pool, console) as display:
            while pool.poll():
                display.update()
                time.sleep(_POLL_S)
            display.update()
    except KeyboardInterrupt:
        console.print("stopping: every run writes its checkpoint")
        pool.stop()
        raise
    return [(run.job, run.problem) for run in pool.runs if run.state == "failed"]


def _visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(index) for index in range(torch.cuda.device_count())]


if __name__ == "__main__":
    sys.exit(main())
