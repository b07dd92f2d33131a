"""GPSA and a ConViT-S training step against timm's, and against a DeiT of the same size, in one run.

    python benchmarks/gpsa.py [--rounds 15] [--batch 8] [--skip-model]

The layer: 432 wide, 9 heads, 14x14 tokens, forward and backward. Peak memory is of a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable

import torch
from timing import describe_machine, report, time_in_turn, training_step
from torch import nn

from suite.models.convit.gpsa import GatedPositionalSelfAttention
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT
from suite.training.optim import build_optimizer

import timm  # isort: skip  (after suite.models, which makes torchvision importable)
from timm.models.convit import GPSA  # isort: skip

GRID = (14, 14)
_MEMORY_BATCH = 64


def layers() -> tuple[GatedPositionalSelfAttention, nn.Module]:
    """Ours and timm's with the same random weights."""
    torch.manual_seed(0)
    ours, theirs = GatedPositionalSelfAttention(432, 9), GPSA(432, num_heads=9)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.05)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def layer_step(call: Callable[[torch.Tensor], torch.Tensor], batch: int) -> Callable[[], None]:
    x = torch.randn(batch, GRID[0] * GRID[1], 432, requires_grad=True)
    return lambda: call(x).sum().backward()


def peak_memory_mib(name: str, batch: int) -> float:
    command = [sys.executable, __file__, "--measure-memory", name, "--batch", str(batch)]
    return float(subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--skip-model", action="store_true")
    parser.add_argument("--measure-memory", choices=["ours", "timm", "nothing"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    ours, theirs = layers()
    steps = {"timm": layer_step(theirs, options.batch), "ours": layer_step(lambda x: ours(x, GRID), options.batch)}
    if options.measure_memory:
        if options.measure_memory in steps:
            steps[options.measure_memory]()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    print(describe_machine())
    x = torch.randn(2, 196, 432)
    print(f"GPSA layer, batch {options.batch}; outputs differ by at most {(ours(x, GRID) - theirs(x)).abs().max():.1e}")
    report(time_in_turn(steps, options.rounds), "timm", f"GPSA layer, forward and backward, batch {options.batch}")
    # a large batch, so that the layer's memory is not hidden below what importing torch took
    base = peak_memory_mib("nothing", _MEMORY_BATCH)
    peaks = {name: f"{peak_memory_mib(name, _MEMORY_BATCH) - base:.0f} MiB" for name in steps}
    print(f"peak memory of a step at batch {_MEMORY_BATCH}:", peaks)
    if not options.skip_model:
        models = {
            "DeiT of ConViT-S's size": build_model("deit_s", dim=432, num_heads=9),
            "timm's ConViT-S": timm.create_model("convit_small"),
            "our ConViT-S": build_model("convit_s"),
        }
        title = f"training step, batch {options.batch}"
        print(title)
        images, labels = torch.randn(options.batch, 3, 224, 224), torch.randint(1000, (options.batch,))
        model_steps = {
            name: training_step(model, build_optimizer(model, DEIT), images, labels) for name, model in models.items()
        }
        report(time_in_turn(model_steps, max(3, options.rounds // 3), warmup=1), "DeiT of ConViT-S's size", title)


if __name__ == "__main__":
    main()
