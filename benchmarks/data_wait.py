"""How much of a training step waits for images, with each format.

    python benchmarks/data_wait.py [--dataset cifar10] [--model deit_micro] [--formats memory ffcv webdataset]
                                   [--data-dir DIR] [--batch 128] [--threads 2] [--workers 2] [--device cpu|cuda]

Steps are those of a run: its engine and optimizer, deterministic operators, bf16 on a GPU. Two figures for each format.
"waiting": the share of a step in which the device has nothing to do but wait for the next batch, which runs log as
``data_wait_percent``. "slower": by how much a step takes longer than with one batch again and again, which counts also
what the loader takes from the model of the processor or the device.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import torch
from timing import describe_machine, load

from imagesets.loader import Batch
from suite.papers.shared.deit import DEIT
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training import distributed
from suite.training.loop import Training
from suite.training.measure.evaluate import wait_for
from suite.training.waiting import Waiting

_WARMUP = 3  # steps


def start_training(options: argparse.Namespace, storage_format: str, ranks: distributed.Ranks, store: Path) -> Training:
    """Set a training up with DeiT's whole augmentation; at the stored size of small images, with crop and flip alone.

    Args:
        options: of the command line.
        storage_format: the images' format.
        ranks: this process.
        store: a folder for the run.
    """
    plain = Recipe(
        name="plain", epochs=1, batch_size=1, learning_rate=1e-3, crop="pad", crop_padding=4, flip_probability=0.5
    )
    precision = "bf16" if ranks.device.type == "cuda" else "fp32"
    recipe = plain if options.size == 32 else DEIT
    recipe = recipe.model_copy(update={"batch_size": options.batch, "mix_group": 0, "precision": precision})
    experiment = Experiment(model=options.model, dataset=options.dataset, image_size=options.size, recipe=recipe)
    run = RunDirectory.of(store / storage_format, experiment)
    run.create(experiment)
    return Training(run, experiment, resources_of(options, storage_format), ranks)


def resources_of(options: argparse.Namespace, storage_format: str = "memory") -> Resources:
    return Resources(
        device="gpu" if options.device == "cuda" else "cpu",
        threads_per_rank=options.threads,
        data_dir=options.data_dir,
        loader=storage_format,
        num_workers=options.workers,
    )


def time_steps(batches: Iterator[Batch], training: Training, num_steps: int) -> tuple[float, float]:
    """Seconds of all steps after the first few, and how much of it was waiting for batches."""
    device = training.ranks.device
    waiting, started = Waiting(device), 0.0
    for step in range(_WARMUP + num_steps):
        if step == _WARMUP:
            wait_for(device)
            waiting.take_s()
            started = time.perf_counter()
        with waiting:
            batch = next(batches)
        training.train_step(step, batch)
    wait_for(device)
    return time.perf_counter() - started, waiting.take_s()


def compare(options: argparse.Namespace, storage_format: str, ranks: distributed.Ranks, store: Path) -> None:
    """Time steps with the loader and with one kept batch, in turn, and print medians over the rounds.

    Args:
        options, storage_format, ranks, store: as for ``start_training``.
    """
    training, num_steps = start_training(options, storage_format, ranks, store), _WARMUP + options.steps
    training.engine.train()
    kept = next(training.images.train_batches(0, 1, device=ranks.device))
    step_ms, waiting, slower = [], [], []
    for turn in range(options.rounds):
        batches = training.images.train_batches(turn * num_steps, (turn + 1) * num_steps, device=ranks.device)
        whole_s, waited_s = time_steps(batches, training, options.steps)
        alone_s, _ = time_steps(repeat(kept), training, options.steps)
        step_ms.append(1e3 * whole_s / options.steps)
        waiting.append(100 * waited_s / whole_s)
        slower.append(100 * (whole_s / alone_s - 1))
    middle_ms = statistics.median(step_ms)
    print(
        f"{storage_format:12s} step {middle_ms:8.1f} ms, {1e3 * options.batch / middle_ms:7,.0f} images/s   "
        f"waiting {statistics.median(waiting):5.1f} %   slower {statistics.median(slower):5.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--model", default="deit_micro")
    parser.add_argument("--size", type=int, default=32, help="of the model's images, pixels")
    parser.add_argument("--formats", nargs="+", default=["memory"])
    parser.add_argument("--data-dir")
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="that a step computes with")
    parser.add_argument("--workers", type=int, default=torch.get_num_threads(), help="threads that decode")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    ranks = distributed.start(resources_of(options))
    name = torch.cuda.get_device_name() if ranks.device.type == "cuda" else ""
    print(describe_machine(), name, load())
    print(f"{options.model} on {options.dataset}, {options.size} px, batch {options.batch}, {options.workers} workers")
    with tempfile.TemporaryDirectory() as store:
        for storage_format in options.formats:
            compare(options, storage_format, ranks, Path(store))
    distributed.stop()


if __name__ == "__main__":
    main()
