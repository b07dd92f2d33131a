"""A training step as ``--compile`` takes it, and on a GPU ``--cuda-graphs``, beside the eager one, in one run.

    python benchmarks/compiled_step.py [--models deit_micro convit_micro] [--image-size 32] [--batch 128] [--rounds 15]
                                       [--clock wall|processor] [--device cpu|gpu]

Forward and backward pass and AdamW, which is fused where the step is compiled, on the same batch. Also prints what the
code's making took, or its finding where an earlier run has made it: it is kept as for trainings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from timing import describe_machine, load, report, time_in_turn

from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.training import distributed
from suite.training.accelerator import wait_for
from suite.training.compilation import compile_training, make_code
from suite.training.optim import build_optimizer


def make_step(
    name: str, resources: Resources, ranks: distributed.Ranks, options: argparse.Namespace
) -> Callable[[], None]:
    """Make a step of a rank alone, as trainings do.

    Args:
        name: Name of the model.
        resources: Resources that say whether the step is compiled, or its passes are CUDA graphs.
        ranks: This process.
        options: Options of the command line.
    """
    torch.manual_seed(0)
    recipe = DEIT_LAPTOP.model_copy(update={"batch_size": options.batch})
    model = build_model(name, num_classes=10, image_size=options.image_size)
    if resources.compiled:
        compile_training(model, resources)
    optimizer = build_optimizer(model, recipe, ranks.device, resources.compiled)
    engine = distributed.initialize(model, optimizer, recipe, resources)
    engine.train()
    images = torch.randn(options.batch, 3, options.image_size, options.image_size, device=ranks.device)
    labels = torch.randint(10, (options.batch,), device=ranks.device)
    if resources.compiled:
        started = time.process_time(), time.perf_counter()
        make_code(engine.module, images, recipe, ranks)
        took = time.process_time() - started[0], time.perf_counter() - started[1]
        print(f"{name}: code made or found in {took[1]:.1f} s, {took[0]:.1f} of this processor's, compiler left out")

    if resources.cuda_graphs:
        engine.record(images)

    def step() -> None:
        engine.backward(F.cross_entropy(engine(images).float(), labels))
        engine.step()
        wait_for(ranks.device)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["deit_micro", "convit_micro"])
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=["wall", "processor"], default="processor")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    options = parser.parse_args()
    ranks = distributed.start(Resources(device=options.device))
    print(f"{describe_machine()}; {load()}")
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    eager = Resources(device=options.device)
    modes = {"eager": eager, "compiled": eager.model_copy(update={"compiled": True})}
    if options.device == "gpu":
        modes["CUDA graphs"] = eager.model_copy(update={"cuda_graphs": True})
    for name in options.models:
        steps = {mode: make_step(name, resources, ranks, options) for mode, resources in modes.items()}
        seconds = time_in_turn(steps, options.rounds, clock=clock)
        report(seconds, "eager", f"training step, {name}, batch {options.batch} ({options.clock} seconds)")


if __name__ == "__main__":
    main()
