"""The options of ``grid.py``, and what each run may use by them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from leaderboards.build import positive
from suite.errors import SpecError
from suite.spec import Resources, StorageFormat
from suite.tables import Profile

_FOR_SLURM = (
    "detach", "runs_per_job", "nodes", "gpus_per_node", "cpus_per_task", "mem_gb", "time_min", "partition", "account",
    "qos", "constraint", "slurm",
)  # fmt: skip
_DEFAULTS = {"runs_per_job": 1, "nodes": 1, "time_min": 60}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="grid.py", description="Plan a suite's grid, train what is missing, build its leaderboard."
    )
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
        "--ranks-per-node", type=positive, metavar="N", help="processes of one run (default 1; with SLURM on CPUs)"
    )
    parser.add_argument(
        "--micro-batch", type=positive, metavar="N", help="images a rank holds at once (default: its share)"
    )
    parser.add_argument("--zero-stage", type=int, choices=range(4), default=0, help="DeepSpeed's ZeRO (default 0)")
    parser.add_argument(
        "--teacher-weights", type=Path, metavar="FILE", help="trained weights of a timm teacher, for distillation"
    )
    parser.add_argument("--device", choices=["cpu", "gpu"], help="train on another device than the profile's")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="another precision than the recipe's: other runs")
    parser.add_argument("--retry-failed", action="store_true", help="start failed runs again, from their checkpoints")
    parser.add_argument("--dry-run", action="store_true", help="show plan and cost, start nothing")
    parser.add_argument("--list", action="store_true", help="show all suites, and what they cost")

    cluster = parser.add_argument_group("on a SLURM cluster")
    cluster.add_argument(
        "--cluster", choices=["local", "slurm"], default="local", help="where to train (default: here)"
    )
    cluster.add_argument("--status", action="store_true", help="show where every run stands; start nothing")
    cluster.add_argument("--watch", action="store_true", help="with --status: again and again, until all have ended")
    cluster.add_argument("--cancel", action="store_true", help="end the suite's jobs; checkpoints stay")
    cluster.add_argument("--detach", action="store_true", help="return once the jobs are in the queue")
    cluster.add_argument(
        "--runs-per-job", type=positive, metavar="N", help="runs that one job trains in turn (default 1)"
    )
    cluster.add_argument("--nodes", type=positive, metavar="N", help="nodes of one run (default 1)")
    cluster.add_argument("--gpus-per-node", type=positive, metavar="N", help="on GPUs: ranks (default 1)")
    cluster.add_argument("--cpus-per-task", type=positive, metavar="N", help="cores of a rank (default 1; with GPUs 8)")
    cluster.add_argument("--mem-gb", type=positive, metavar="N", help="memory of a node")
    cluster.add_argument(
        "--time-min", type=positive, metavar="N",
        help="a job's time limit (default 60); a run that needs longer is requeued and goes on",
    )  # fmt: skip
    for name in ("partition", "account", "qos", "constraint"):
        cluster.add_argument(f"--{name}", metavar="NAME", help="as sbatch's")
    cluster.add_argument(
        "--slurm", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="more of sbatch's options"
    )
    options = parser.parse_args(arguments)
    _check(options)
    return argparse.Namespace(
        **{**vars(options), **{n: v for n, v in _DEFAULTS.items() if getattr(options, n) is None}}
    )


def _check(options: argparse.Namespace) -> None:
    """Refuse what would be ignored.

    Raises:
        SpecError: options that do not go together.
    """
    given = [f"--{name.replace('_', '-')}" for name in _FOR_SLURM if getattr(options, name)]
    if given and options.cluster != "slurm":
        raise SpecError(f"{', '.join(given)} would do nothing here: add --cluster slurm, or leave it out")
    if options.watch and not options.status:
        raise SpecError("--watch goes with --status")
    if options.cancel and (options.status or options.dry_run or options.only):
        raise SpecError("--cancel ends all jobs of a suite's profile: it takes no --status, --dry-run or --only")


def make_resources(options: argparse.Namespace, profile: Profile, num_ranks: int, threads_per_rank: int) -> Resources:
    """What one run may use.

    Raises:
        SpecError: the ranks or micro-batches do not share a batch evenly, or there is no such file of weights.
    """
    weights: Path | None = options.teacher_weights
    if weights is not None and not weights.is_file():
        raise SpecError(f"--teacher-weights {weights}: there is no such file")
    resources = Resources(
        device=profile.device,
        num_ranks=num_ranks,
        threads_per_rank=threads_per_rank,
        micro_batch_size=options.micro_batch,
        zero_stage=options.zero_stage,
        checkpoint_every_s=profile.checkpoint_every_s,
        num_evaluations=profile.num_evaluations,
        data_dir=str(options.data_dir.absolute()) if options.data_dir else None,
        loader=options.loader,
        num_workers=options.workers or 0,
        skip_corrupt=options.skip_corrupt,
        teacher_weights=str(weights.absolute()) if weights else None,
    )
    for batch_size in sorted({experiment.recipe.batch_size for experiment in profile.experiments()}):
        resources.split_batch(batch_size)
    return resources
