"""The quadratic encoding's map as two small products against the dense map, in one run.

    python benchmarks/sa_quadratic.py [--batch 8] [--rounds 15] [--threads 2] [--skip-model]

The mixing: 400 wide, 9 heads, 16x16 tokens, forward and backward, gradients of tokens, spreads and centers included.
The training step: the whole network by its recipe's optimizer. No attention dropout anywhere.

Dense are two: "authors", the steps of the paper's code (scores of all pairs as one product with the offsets, a softmax
over all keys, one einsum), and "dense", the product that our layer uses where the map is dropped out.

Beside the ratio that is reached stands its bound: the separable mixing's products and memory at this machine's rates,
and the same with the products as fast as they are at their own sizes, 16 wide, on numbers that stay in the cache.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable

import torch
from roofline import Work, measure_rates, seconds_of
from timing import describe_machine, report, time_in_turn, training_step
from torch import Tensor

from suite.models.cordonnier.attention import PositionAttention, QuadraticAttention, centered_offsets
from suite.models.cordonnier.network import MODELS


class DenseQuadraticAttention(QuadraticAttention):
    """The same layer by its materialised map: what attention dropout needs in training."""

    mix = PositionAttention.mix


class AuthorsQuadraticAttention(DenseQuadraticAttention):
    """The same layer by the steps of the authors' code (github.com/epfml/attention-cnn). S: the five terms."""

    def mix(self, x_BND: Tensor) -> Tensor:
        a_H, (row_H, column_H) = self.spreads**2, self.centers_H2.unbind(1)
        terms_HS = torch.stack([a_H * row_H, a_H * column_H, -a_H / 2, -a_H / 2, torch.zeros_like(a_H)], dim=-1)
        scores_RCHRC = torch.einsum("ijkls,hs->ijhkl", pair_terms(self.grid), terms_HS)
        map_RCHRC = scores_RCHRC.flatten(3).softmax(-1).view_as(scores_RCHRC)
        return torch.einsum("ijhkl,bklm->bijhm", map_RCHRC, x_BND.unflatten(1, self.grid)).reshape(*x_BND.shape[:2], -1)


@functools.cache
def pair_terms(grid: tuple[int, int]) -> Tensor:
    """Offsets, their squares and their product for each query and key: (R, C, R, C, 5)."""
    rows_1RR, columns_1CC = centered_offsets(torch.zeros(1, 2), grid)
    row, column = torch.broadcast_tensors(rows_1RR[0, :, None, :, None], columns_1CC[0, None, :, None, :])
    return torch.stack([row, column, row**2, column**2, row * column], dim=-1)


_DIM, _HEADS, _GRID = 400, 9, (16, 16)
LAYERS = {"authors": AuthorsQuadraticAttention, "dense": DenseQuadraticAttention, "separable": QuadraticAttention}


def mixing_steps(batch: int) -> dict[str, Callable[[], None]]:
    """Each layer's mixing with the same weights and tokens; prints how far their outputs are from the first's."""
    torch.manual_seed(0)
    layers = {name: layer(_DIM, _HEADS, _GRID, 0.0) for name, layer in LAYERS.items()}
    x_BND = torch.randn(batch, _GRID[0] * _GRID[1], _DIM)
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
    """Make a step of the published network with each layer and the same weights."""
    torch.manual_seed(0)
    steps, state = {}, None
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    for name, layer in LAYERS.items():
        model = MODELS["sa_quadratic"](num_classes=10, image_size=32, attention_dropout=0.0)
        state = state or model.state_dict()
        model.load_state_dict(state)
        for block in model.blocks:
            block.attention.__class__ = layer
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
        steps[name] = training_step(model, optimizer, images, labels)
    return steps


def separable_work(batch: int) -> Work:
    """Six products, two forward and four backward, along 16 rows or columns; tokens in and out, and their gradients."""
    (rows, columns), tokens = _GRID, batch * _GRID[0] * _GRID[1]
    flops = 3 * 2 * tokens * _HEADS * _DIM * (rows + columns)
    return Work(flops, 4 * tokens * _DIM * (3 + 2 * _HEADS))  # twice what is H times as wide: outputs, their gradients


def small_products(batch: int) -> Callable[[], None]:
    """Those products, and the one that our layer does twice, on the numbers of one group again and again."""
    (rows, columns), group = _GRID, torch.get_num_threads()
    x_GRK, total_GMR = torch.randn(group, rows, columns * _DIM), torch.zeros(group, _HEADS * rows, rows)
    rows_GMR, grad_x_GRK = torch.randn_like(total_GMR), torch.empty_like(x_GRK)
    columns_PCC = torch.randn(group * _HEADS * rows, columns, columns)
    total_PCC = torch.zeros_like(columns_PCC)
    inner_GMK, outer_GMK = torch.randn(2, group, _HEADS * rows, columns * _DIM)
    inner_PCD, outer_PCD = (values.view(-1, columns, _DIM) for values in (inner_GMK, outer_GMK))

    def multiply() -> None:
        for _ in range(batch // group):
            torch.bmm(rows_GMR, x_GRK, out=inner_GMK)
            torch.bmm(columns_PCC, inner_PCD, out=outer_PCD)
            torch.bmm(rows_GMR, x_GRK, out=inner_GMK)
            total_PCC.baddbmm_(outer_PCD, inner_PCD.mT)
            torch.bmm(columns_PCC.mT, outer_PCD, out=inner_PCD)
            total_GMR.baddbmm_(inner_GMK, x_GRK.mT)
            torch.bmm(rows_GMR.mT, inner_GMK, out=grad_x_GRK)

    return multiply


def show_bound(seconds: dict[str, list[float]], batch: int, rounds: int) -> None:
    """Print how many times as fast as dense the separable mixing could be here, beside what it is.

    Args:
        seconds: Seconds of the mixings in each round, by name.
        batch: Images of a batch.
        rounds: Number of rounds in which the machine is measured.
    """
    rates, work = measure_rates(rounds), separable_work(batch)
    memory_s, small_s = work.seconds_of_memory(rates), seconds_of(small_products(batch), rounds)
    bounds = {
        f"products at the rate of a large one ({1e3 * work.seconds_of_products(rates):.1f} ms)": max(
            work.seconds_of_products(rates), memory_s
        ),
        f"products at their own sizes, in the cache ({1e3 * small_s:.1f} ms)": max(small_s, memory_s),
        "these, and memory not at the same time": small_s + memory_s,
    }
    print(f"bound with {torch.get_num_threads()} threads: {rates.describe()}")
    print(f"separable: {work.flops / 1e9:.2f} GFLOP, {work.num_bytes / 1e6:.0f} MB ({1e3 * memory_s:.1f} ms)")
    dense_s = statistics.median(seconds["dense"])
    for name, bound_s in bounds.items():
        print(f"  {name}: at most {dense_s / bound_s:.1f} times as fast as dense")
    print(f"  reached: {dense_s / statistics.median(seconds['separable']):.1f}")


def compare(title: str, steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Times against both references; returns the seconds of each."""
    seconds = time_in_turn(steps, rounds)
    print(title)
    for reference in ("authors", "dense"):
        both = {name: values for name, values in seconds.items() if name in (reference, "separable")}
        report(both, reference, f"SA quadratic, {title}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--skip-model", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(describe_machine())
    title = f"mixing, forward and backward, batch {options.batch}"
    seconds = compare(title, mixing_steps(options.batch), options.rounds)
    show_bound(seconds, options.batch, options.rounds)
    if not options.skip_model:
        steps = training_steps(options.batch)
        compare(f"training step, batch {options.batch}", steps, max(3, options.rounds // 3))


if __name__ == "__main__":
    main()
