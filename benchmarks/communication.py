"""Adding the gradients of two ranks up: in buckets during the backward pass, or all at once after it, in one run.

    python benchmarks/communication.py [--model deit_ti] [--batch 16] [--rounds 12] [--device cpu|gpu]
                                       [--buckets-mb 1 4 25 100]

DistributedDataParallel with buckets of each size, beside the same step that adds one flat tensor up at its end, so that
nothing overlaps: gloo between two processes of one thread, or NCCL between two GPUs. Images of 64 pixels: little to
compute for each gradient, as of a run on many ranks. The gradients' own time is printed beside.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from measured import note
from ranks import meet, spawn, until_done
from timing import describe_machine, load, time_in_turn
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from suite.models.registry import build_model
from suite.spec.resources import Resources

_AT_ONCE = "all at once, after the backward pass"
_NUM_RANKS = 2


def measure(rank: int, port: int, options: argparse.Namespace) -> None:
    """Time all steps in turn, as one of the ranks; the first prints the medians."""
    device = meet(rank, port, Resources(num_ranks=_NUM_RANKS, device=options.device))
    images = torch.randn(options.batch // _NUM_RANKS, 3, 64, 64, device=device)
    labels = torch.randint(10, (len(images),), device=device)
    steps = {_AT_ONCE: step_at_once(model_of(options.model, device), images, labels)}
    for size_mb in options.buckets_mb:
        parallel = DistributedDataParallel(model_of(options.model, device), bucket_cap_mb=size_mb)
        steps[f"in buckets of {size_mb} MB, during it"] = step_in_buckets(parallel, images, labels)
    gradients = torch.zeros_like(parameters_to_vector(model_of(options.model, device).parameters()))
    steps["the addition alone"] = lambda: dist.all_reduce(gradients)
    timed = {name: until_done(step, device) for name, step in steps.items()}
    seconds = time_in_turn(timed, options.rounds)
    if rank == 0:
        show(seconds, 4 * len(gradients), options)


def show(seconds: dict[str, list[float]], num_bytes: int, options: argparse.Namespace) -> None:
    """Print the medians, and hand the buckets' ratios on."""
    print(f"{options.model}, {num_bytes / 1e6:.0f} MB of gradients, {_NUM_RANKS} ranks, batch {options.batch}")
    for name, values in seconds.items():
        ratios = sorted(b / a for a, b in zip(values, seconds[_AT_ONCE], strict=True))
        spread = f"{statistics.median(ratios):.3f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{name:38s} {1e3 * statistics.median(values):8.1f} ms  {spread if name.startswith('in') else ''}")
        if name.startswith("in"):
            note(f"step of {_NUM_RANKS} ranks, {options.model}: gradients {name}", _AT_ONCE, values, seconds[_AT_ONCE])


def step_in_buckets(parallel: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    """Make a pass forward and backward in which each full bucket is added up while the next one is computed."""

    def step() -> None:
        parallel.zero_grad()
        F.cross_entropy(parallel(images), labels).backward()

    return step


def step_at_once(model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    """Make the same pass, after which all gradients are averaged as one flat tensor."""

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        flat = parameters_to_vector(gradients)
        dist.all_reduce(flat.div_(_NUM_RANKS))
        vector_to_parameters(flat, gradients)

    return step


def model_of(name: str, device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    return build_model(name, num_classes=10, image_size=64).to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="deit_ti")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--buckets-mb", type=int, nargs="+", default=[1, 4, 25, 100])
    options = parser.parse_args()
    print(f"{describe_machine()}; {load()}")
    spawn(measure, _NUM_RANKS, options)


if __name__ == "__main__":
    main()
