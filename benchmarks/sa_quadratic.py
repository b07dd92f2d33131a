"""The quadratic encoding's map as two small products against the dense map, in one run.

    python benchmarks/sa_quadratic.py [--batch 8] [--rounds 15] [--threads 2] [--skip-model]

The mixing: 400 wide, 9 heads, 16x16 tokens, forward and backward, gradients of tokens, spreads and centers included.
The training step: the whole network by its recipe's optimizer. No attention dropout anywhere.

Dense are two: "authors", the steps of the paper's code (scores of all pairs as one product with the offsets, a softmax
over all keys, one einsum), and "dense", the product that our layer uses where the map is dropped out.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from timing import describe_machine, report, time_in_turn
from torch import Tensor, nn

from suite.models.cordonnier import MODELS
from suite.models.cordonnier_attention import PositionAttention, QuadraticAttention, centered_offsets


class DenseQuadraticAttention(QuadraticAttention):
    """The same layer by its materialised map: what attention dropout needs in training."""

    mix = PositionAttention.mix


class AuthorsQuadraticAttention(DenseQuadraticAttention):
    """The same layer by the steps of the authors' code (github.com/epfml/attention-cnn). S: the five terms."""

    def mix(self, x_BND: Tensor) -> Tensor:
        a_H, (row_H, column_H) = self.spreads**2, self.centers_H2.unbind(1)
        terms_HS = torch.stack([a_H * row_H, a_H * column_H, -a_H / 2, -a_H / 2, torch.zeros_like(a_H)], dim=-1)
        scores_RCHRC = torch.einsum("ijkls,hs->ijhkl", pair_terms(*self.grid), terms_HS)
        map_RCHRC = scores_RCHRC.flatten(3).softmax(-1).view_as(scores_RCHRC)
        return torch.einsum("ijhkl,bklm->bijhm", map_RCHRC, x_BND.unflatten(1, self.grid)).reshape(*x_BND.shape[:2], -1)


@functools.cache
def pair_terms(*grid: int) -> Tensor:
    """Offsets, their squares and their product for each query and key: (R, C, R, C, 5)."""
    rows_1RR, columns_1CC = centered_offsets(torch.zeros(1, 2), grid)
    row, column = torch.broadcast_tensors(rows_1RR[0, :, None, :, None], columns_1CC[0, None, :, None, :])
    return torch.stack([row, column, row**2, column**2, row * column], dim=-1)


LAYERS = {"authors": AuthorsQuadraticAttention, "dense": DenseQuadraticAttention, "separable": QuadraticAttention}


def mixing_steps(batch: int) -> dict[str, Callable[[], None]]:
    """Each layer's mixing with the same weights and tokens; prints how far their outputs are from the first's."""
    torch.manual_seed(0)
    layers = {name: layer(400, 9, (16, 16), 0.0) for name, layer in LAYERS.items()}
    x_BND = torch.randn(batch, 256, 400)
    steps = {}
    for name, layer in layers.items():
        layer.load_state_dict(layers["authors"].state_dict())
        steps[name] = mixing_step(layer.mix, x_BND.clone().requires_grad_())
        difference = (layer(x_BND) - layers["authors"](x_BND)).abs().max()
        print(f"{name}: largest difference of the layer's output from the authors' {difference:.1e}")
    return steps


def mixing_step(mix: Callable[[Tensor], Tensor], x_BND: Tensor) -> Callable[[], None]:
    grad = torch.randn_like(mix(x_BND))
    return lambda: mix(x_BND).backward(grad)


def training_steps(batch: int) -> dict[str, Callable[[], None]]:
    """Of the published network with each layer and the same weights."""
    torch.manual_seed(0)
    steps, state = {}, None
    for name, layer in LAYERS.items():
        model = MODELS["sa_quadratic"](num_classes=10, image_size=32, attention_dropout=0.0)
        state = state or model.state_dict()
        model.load_state_dict(state)
        for block in model.blocks:
            block.attention.__class__ = layer
        steps[name] = training_step(model, batch)
    return steps


def training_step(model: nn.Module, batch: int) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def step() -> None:
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def compare(title: str, steps: dict[str, Callable[[], None]], rounds: int) -> None:
    """Times against both references."""
    seconds = time_in_turn(steps, rounds)
    print(title)
    for reference in ("authors", "dense"):
        both = {name: values for name, values in seconds.items() if name in (reference, "separable")}
        report(both, reference, f"SA quadratic, {title}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--skip-model", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(describe_machine())
    compare(f"mixing, forward and backward, batch {options.batch}", mixing_steps(options.batch), options.rounds)
    if not options.skip_model:
        steps = training_steps(options.batch)
        compare(f"training step, batch {options.batch}", steps, max(3, options.rounds // 3))


if __name__ == "__main__":
    main()
