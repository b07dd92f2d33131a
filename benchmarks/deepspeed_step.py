"""A training step of ours beside plain PyTorch's and DeepSpeed's, of one rank and of two, in one run.

    python benchmarks/deepspeed_step.py [--model deit_micro] [--batch 128] [--rounds 30] [--device cpu|gpu]
                                        [--clock wall|processor] [--most-ranks 2]

One rank trains by plain PyTorch in DeepSpeed's place, two by DeepSpeed, whose reference is DistributedDataParallel. The
batch is that of all ranks. All train the same model with the same optimizer in the same processes, in turn. Two ranks
need two GPUs. Processor seconds are those of the first rank, for a machine with other work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import meet, spawn, until_done
from timing import describe_machine, load, report, time_in_turn, training_step
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training import distributed
from suite.training.optim import build_optimizer


def measure(rank: int, port: int, num_ranks: int, options: argparse.Namespace) -> None:
    """Time both kinds of step in turn, as one of the ranks; the first prints the medians.

    Args:
        rank: Number of this process.
        port: Port of this machine at which the ranks meet.
        num_ranks: Number of all ranks.
        options: Options of the command line.
    """
    resources = Resources(num_ranks=num_ranks, device=options.device)
    device = meet(rank, port, resources.model_copy(update={"zero_stage": 1}))  # DeepSpeed needs a group
    recipe = DEIT_LAPTOP.model_copy(update={"batch_size": options.batch})
    share = options.batch // num_ranks
    images, labels = torch.randn(share, 3, 32, 32, device=device), torch.randint(10, (share,), device=device)
    plain = "DistributedDataParallel" if num_ranks > 1 else "PyTorch"
    steps = {plain: plain_step(recipe, options.model, images, labels)}
    wraps = {"ours": distributed.initialize, "DeepSpeed": distributed.wrap_in_deepspeed}
    for name, wrap in list(wraps.items())[num_ranks - 1 :]:  # of two ranks ours is DeepSpeed
        steps[name] = engine_step(wrap, recipe, resources, options.model, images, labels)
    timed = {name: until_done(step, device) for name, step in steps.items()}
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    seconds = time_in_turn(timed, options.rounds, warmup=5, clock=clock)
    if rank == 0:
        title = f"training step, {options.model}, {num_ranks} ranks ({options.clock} seconds)"
        print(title)
        report(seconds, plain, title)


def plain_step(recipe: Recipe, name: str, images: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    """Make a step by DistributedDataParallel, or of the bare model on one rank.

    Args:
        recipe: Recipe that gives the optimizer.
        name: Name of the model.
        images, labels: This rank's share of the batch.
    """
    model = model_of(name).to(images.device)
    optimizer = build_optimizer(model, recipe)
    parallel = DistributedDataParallel(model) if dist.get_world_size() > 1 else model

    return training_step(parallel, optimizer, images, labels)


def engine_step(
    wrap: Callable[..., Any],
    recipe: Recipe,
    resources: Resources,
    name: str,
    images: torch.Tensor,
    labels: torch.Tensor,
) -> Callable[[], None]:
    """Make a step by an engine, as trainings do.

    Args:
        wrap: Function that makes the engine, ``distributed.initialize`` or ``distributed.wrap_in_deepspeed``.
        images, labels: This rank's share of the batch.
    """
    model = model_of(name)
    engine = wrap(model, build_optimizer(model, recipe), recipe, resources)

    def step() -> None:
        engine.backward(F.cross_entropy(engine(images).float(), labels))
        engine.step()

    return step


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build_model(name, num_classes=10, image_size=32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="deit_micro")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--most-ranks", type=int, choices=[1, 2], default=2)
    options = parser.parse_args()
    print(f"{describe_machine()}; {load()}")
    most = options.most_ranks if options.device == "cpu" else min(options.most_ranks, torch.cuda.device_count())
    for num_ranks in range(1, most + 1):
        spawn(measure, num_ranks, num_ranks, options)


if __name__ == "__main__":
    main()
