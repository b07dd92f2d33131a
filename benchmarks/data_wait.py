"""How much of a training step waits for images, with each format.

    python benchmarks/data_wait.py [--dataset cifar10] [--model deit_micro] [--formats memory ffcv webdataset]
                                   [--data-dir DIR] [--batch 128] [--threads 2] [--workers 2] [--device cpu|cuda]

Two figures for each. "waiting": the share of a step in which the loop waits for the next batch, the device being idle,
as each step ends with its loss. "slower": by how much a step takes longer than with one batch again and again, which
counts also what the loader takes from the model of the processor or the device. Runs log the first of them as
``data_wait_percent``, without waiting for each loss.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import repeat

import torch
import torch.nn.functional as F
from timing import describe_machine, load

from imagesets.loader import Batch, ImageLoader
from suite.models.build import build_model
from suite.protocols.deit import DEIT
from suite.spec import Experiment, Recipe, Resources
from suite.training.optim import build_optimizer

_WARMUP = 3  # steps


def open_loader(options: argparse.Namespace, stored_as: str) -> ImageLoader:
    """DeiT's whole augmentation at random resized crops; at the stored size of small images, crop and flip alone."""
    plain = Recipe(
        name="plain", epochs=1, batch_size=1, learning_rate=1, crop="pad", crop_padding=4, flip_probability=0.5
    )
    recipe = (plain if options.size == 32 else DEIT).model_copy(update={"batch_size": options.batch, "mix_group": 0})
    experiment = Experiment(model=options.model, dataset=options.dataset, image_size=options.size, recipe=recipe)
    resources = Resources(data_dir=options.data_dir, loader=stored_as, num_workers=options.workers)
    return ImageLoader(experiment, resources)


def training_step(options: argparse.Namespace, loader: ImageLoader, device: torch.device) -> Callable[[Batch], float]:
    torch.manual_seed(0)
    model = build_model(options.model, num_classes=loader.info.num_classes, image_size=options.size).to(device)
    optimizer = build_optimizer(model, DEIT)

    def step(batch: Batch) -> float:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = F.cross_entropy(model(batch.images), batch.labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def time_steps(batches: Iterator[Batch], step: Callable[[Batch], float]) -> tuple[float, float]:
    """Seconds of all steps after the first few, and how much of it was waiting for batches."""
    whole = waiting = 0.0
    started = time.perf_counter()
    for number, batch in enumerate(batches):
        received = time.perf_counter()
        step(batch)
        done = time.perf_counter()
        if number >= _WARMUP:
            whole += done - started
            waiting += received - started
        started = done
    return whole, waiting


def compare(options: argparse.Namespace, stored_as: str, device: torch.device) -> None:
    """Rounds of steps with the loader and with one kept batch, in turn; medians over them."""
    loader, num_steps = open_loader(options, stored_as), _WARMUP + options.steps
    step = training_step(options, loader, device)
    kept = next(loader.train_batches(0, 1, device=device))
    step_ms, waiting, slower = [], [], []
    for turn in range(options.rounds):
        batches = loader.train_batches(turn * num_steps, (turn + 1) * num_steps, device=device)
        whole_s, waited_s = time_steps(batches, step)
        alone_s, _ = time_steps(repeat(kept, num_steps), step)
        step_ms.append(1e3 * whole_s / options.steps)
        waiting.append(100 * waited_s / whole_s)
        slower.append(100 * (whole_s / alone_s - 1))
    middle_ms = statistics.median(step_ms)
    print(
        f"{stored_as:12s} step {middle_ms:8.1f} ms, {1e3 * options.batch / middle_ms:7,.0f} images/s   "
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
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    print(describe_machine(), torch.cuda.get_device_name() if device.type == "cuda" else "", load())
    print(f"{options.model} on {options.dataset}, {options.size} px, batch {options.batch}, {options.workers} workers")
    for stored_as in options.formats:
        compare(options, stored_as, device)


if __name__ == "__main__":
    main()
