"""Runs an hour on one GPU: the same runs one at a time, and several at a time by NVIDIA's MPS.

    python benchmarks/gpu_packing.py --out DIR [--device gpu] [--runs 8] [--at-once 8] [--epochs 8]

The runs are ConViT-Ti's on CIFAR-10 at 32 pixels, each of another seed, for a few epochs; the grid's own pool carries
them out, start-up and evaluation included. "images_per_s_of_a_run" is the median of what runs have logged in training.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import short_runs
from rich.console import Console

from launchers.core.plan import make_plan
from launchers.local.gpu_sharing import SharedGpus
from launchers.local.pool import Gpus, LocalPool
from suite.papers.convit import recipes as convit
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources

_POLL_S = 0.1


def carry_out(experiments: list[Experiment], at_once: int, gpus: Gpus, store: Path) -> dict[str, Any]:
    """Carry all runs out from nothing, and measure how many an hour are done.

    Args:
        experiments: one run each.
        at_once: at most so many at a time.
        gpus: that they are on; none: they train on the processor.
        store: emptied first.
    """
    shutil.rmtree(store, ignore_errors=True)
    threads = max(1, len(os.sched_getaffinity(0)) // at_once)
    resources = Resources(device="gpu" if gpus.names else "cpu", threads_per_rank=threads, num_evaluations=1)
    pool = LocalPool(make_plan(experiments, store, resources), at_once, gpus)
    started = time.perf_counter()
    while pool.poll():
        time.sleep(_POLL_S)
    seconds = time.perf_counter() - started
    rates = [
        [line["images_per_s"] for line in run.job.directory.read_metrics() if "images_per_s" in line]
        for run in pool.runs
    ]
    return {
        "at_once": at_once,
        "by_mps": "CUDA_MPS_PIPE_DIRECTORY" in gpus.variables(0, 1),
        "seconds": seconds,
        "runs_per_hour": 3600 * len(experiments) / seconds,
        "images_per_s_of_a_run": statistics.median(statistics.median(found) for found in rates if found),
        "failed": [run.problem for run in pool.runs if run.state != "done"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--epochs", type=float, default=8, help="of the full set, of each run")
    parser.add_argument("--small", action="store_true", help="two runs of three steps, for a rehearsal")
    options = parser.parse_args()
    first = convit.gpu("convit", "Ti")
    first = first.model_copy(update={"recipe": first.recipe.with_epochs(options.epochs, warmup_epochs=0)})
    if options.small:
        options.runs, options.at_once, first = 2, 2, short_runs.shorten(first, 3, 16)
    experiments = [first.with_seed(seed) for seed in range(options.runs)]
    names, store = ["0"] if options.device == "gpu" else [], options.out / "scratch"
    alone = carry_out(experiments, 1, Gpus(names), store)
    with SharedGpus(names, Console()) if names else nullcontext(Gpus()) as gpus:
        together = carry_out(experiments, options.at_once, gpus, store)
    ratio = together["runs_per_hour"] / alone["runs_per_hour"]
    failed = [*alone["failed"], *together["failed"]]
    report = {"one_at_a_time": alone, "several_at_a_time": together, "times_the_runs_per_hour": ratio, "failed": failed}
    short_runs.write_report(options.out, "packing", report)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
