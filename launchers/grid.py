"""The main command: plan a suite's grid, train what is missing, build its leaderboard.

    python launchers/grid.py --suite sample_efficiency

The same command again goes on where the last one ended. What a node calls is ``suite.execute``, never this file.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from launchers.plan import PlannedRun, in_slots, make_plan, select
from launchers.report import print_cost, print_failures, print_plan, print_suites
from leaderboards.build import build
from suite.errors import SpecError, SuiteError
from suite.spec import Profile, Resources, Suite
from suite.suites import get_suite, list_suites

EXIT_MISUSE = 2
_POLL_S = 0.25


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="grid.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--suite", metavar="NAME", help="which table to fill; --list shows all")
    parser.add_argument(
        "--profile", default="laptop", help="laptop (default), gpu, paper, or smoke: seconds, no meaning"
    )
    parser.add_argument(
        "--seeds", type=_positive, default=1, metavar="N", help="seeds 0 to N-1 of every cell (default 1)"
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
        "--max-parallel", type=_positive, metavar="N", help="runs at once (default: one per core or GPU)"
    )
    parser.add_argument(
        "--ranks-per-node", type=_positive, default=1, metavar="N", help="processes of one run (default 1)"
    )
    parser.add_argument(
        "--micro-batch", type=_positive, metavar="N", help="images a rank holds at once (default: its share)"
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
    console = Console()
    try:
        if options.list:
            print_suites(console)
            return 0
        if options.suite is None:
            raise SpecError(f"--suite NAME is missing. Valid: {', '.join(list_suites())}.")
        return _grid(options, get_suite(options.suite), console)
    except SpecError as error:
        Console(stderr=True).print(f"grid.py: {error}", style="red", markup=False, soft_wrap=True)
        return EXIT_MISUSE
    except SuiteError as error:
        Console(stderr=True).print(f"grid.py: {error}", style="red", markup=False, soft_wrap=True)
        return 1


def _grid(options: argparse.Namespace, suite: Suite, console: Console) -> int:
    profile = suite.profile(options.profile)
    if options.precision:
        profile = profile.with_precision(options.precision)
    experiments = select(profile.experiments(options.seeds), options.only)
    max_parallel, resources = _resources(options, profile)
    plan = make_plan(experiments, options.runs, resources)
    if options.retry_failed:
        for run in plan:
            if run.status == "failed":
                run.job.directory.forget_failure()
        plan = make_plan(experiments, options.runs, resources)
    print_plan(console, suite, options.profile, profile, plan, options.runs)
    if options.dry_run:
        print_cost(console, profile, plan, max_parallel)
        return 0
    status = 0
    if any(run.status not in ("done", "failed") for run in plan):
        for dataset in sorted({run.job.experiment.dataset for run in plan}):
            _fetch(dataset, options.data_dir)
        status = _train(plan, max_parallel, console)
    failed = [run for run in make_plan(experiments, options.runs, resources) if run.status == "failed"]
    print_failures(console, failed)
    build(suite.name, options.profile, options.runs, options.seeds)
    return status or (1 if failed else 0)


def _resources(options: argparse.Namespace, profile: Profile) -> tuple[int, Resources]:
    """How many runs at once, and each one's share of the machine."""
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    slots = num_cores if profile.device == "cpu" else _num_gpus()
    max_parallel = options.max_parallel or max(1, slots // options.ranks_per_node)
    resources = in_slots(
        profile,
        max_parallel,
        num_cores,
        num_ranks=options.ranks_per_node,
        micro_batch_size=options.micro_batch,
        zero_stage=options.zero_stage,
        data_dir=str(options.data_dir) if options.data_dir else None,
    )
    return max_parallel, resources


def _train(plan: Sequence[PlannedRun], max_parallel: int, console: Console) -> int:
    """Carry the plan out; Ctrl-C lets every run write its checkpoint first."""
    from launchers.display import Display
    from launchers.local import LocalPool

    pool = LocalPool(plan, max_parallel)
    try:
        with Display(pool, console) as display:
            while pool.poll():
                display.update()
                time.sleep(_POLL_S)
            display.update()
    except KeyboardInterrupt:
        console.print("stopping: every run writes its checkpoint; the same command goes on from there")
        pool.stop()
        return 130
    return 0


def _fetch(dataset: str, data_dir: Path | None) -> None:
    from imagesets.fetch import ensure

    ensure(dataset, data_dir)


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count()


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


if __name__ == "__main__":
    sys.exit(main())
