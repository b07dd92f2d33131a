"""The quadratic encoding's map as two small products against the dense map, in one run.

    python benchmarks/sa_quadratic.py [--batch 8] [--rounds 15] [--threads 2] [--skip-model]

The mixing: 400 wide, 9 heads, 16x16 tokens, forward and backward, gradients of tokens, spreads and centers included.
The training step: the whole network by its recipe's optimizer, without attention dropout in either.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from timing import describe_machine, report, time_in_turn
from torch import nn

from suite.models.cordonnier import MODELS
from suite.models.cordonnier_attention import PositionAttention, QuadraticAttention


class DenseQuadraticAttention(QuadraticAttention):
    """The same layer by its materialised map: what attention dropout needs in training."""

    mix = PositionAttention.mix


def mixing_step(layer: QuadraticAttention, batch: int) -> Callable[[], None]:
    x = torch.randn(batch, 256, 400, requires_grad=True)
    grad = torch.randn(batch, 256, 3600)
    return lambda: layer.mix(x).backward(grad)


def training_step(model: nn.Module, batch: int) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def step() -> None:
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def networks() -> dict[str, nn.Module]:
    """The published network, twice with the same weights."""
    torch.manual_seed(0)
    build = MODELS["sa_quadratic"]
    dense, separable = (build(num_classes=10, image_size=32, attention_dropout=0.0) for _ in range(2))
    dense.load_state_dict(separable.state_dict())
    for block in dense.blocks:
        block.attention.__class__ = DenseQuadraticAttention
    return {"dense": dense, "separable": separable}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--skip-model", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(describe_machine())
    torch.manual_seed(0)
    dense, separable = (layer(400, 9, (16, 16), 0.0) for layer in (DenseQuadraticAttention, QuadraticAttention))
    dense.load_state_dict(separable.state_dict())
    x = torch.randn(2, 256, 400)
    difference = (dense.mix(x) - separable.mix(x)).abs().max()
    print(f"mixing, forward and backward, batch {options.batch}; largest difference of outputs {difference:.1e}")
    layers = {"dense": dense, "separable": separable}
    report(time_in_turn({n: mixing_step(layer, options.batch) for n, layer in layers.items()}, options.rounds), "dense")
    if not options.skip_model:
        print(f"training step, batch {options.batch}")
        steps = {name: training_step(model, options.batch) for name, model in networks().items()}
        report(time_in_turn(steps, max(3, options.rounds // 3), warmup=1), "dense")


if __name__ == "__main__":
    main()
