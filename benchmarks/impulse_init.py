"""How long Algorithm 1 of arXiv:2404.01139 takes: all heads at once, against one head at a time with autograd.

    python benchmarks/impulse_init.py [--model vit_s] [--steps 300] [--rounds 3] [--full-steps 10000] [--threads 2]

Both start from the same weights and are timed in turn in the same process; the cache is not used. The one-head
version is the algorithm as printed: the dense target, X Q K^T X^T, autograd and torch's Adam, fused as ours is.
Then ``--full-steps`` steps are timed once, all heads at once; 0 leaves them out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from measured import note
from torch import Tensor

from suite.models.structured_init.impulse import ImpulseLoss, ImpulseProblem, Start, draw, shifted_patch, solve

MODELS = {"vit_t": (192, 3), "vit_s": (384, 6)}  # width, heads
Weights = tuple[Tensor, Tensor]


def solve_one_head(problem: ImpulseProblem, start: Start, head: int) -> Weights:
    width = problem.dim // problem.num_heads
    x_ND = start.x_LND[0].float()
    q_DE, k_DE = (
        w[0][:, head * width : (head + 1) * width].clone().requires_grad_() for w in (start.q_LDC, start.k_LDC)
    )
    key_LHN, inside_LHN = shifted_patch(problem.grid, start.shift_LH2)
    target_NN = F.one_hot(key_LHN[0, head], len(x_ND)) * inside_LHN[0, head, :, None].float()
    adam = torch.optim.Adam([q_DE, k_DE], lr=problem.learning_rate, fused=True)
    for _ in range(problem.steps):
        adam.zero_grad()
        attention_NN = ((x_ND @ q_DE) @ (x_ND @ k_DE).T * width**-0.5).softmax(-1)
        (F.mse_loss(attention_NN, target_NN) / problem.num_heads).backward()
        adam.step()
    return q_DE.detach(), k_DE.detach()


def one_head_at_a_time(problem: ImpulseProblem) -> Weights:
    heads = [solve_one_head(problem, draw(problem), head) for head in range(problem.num_heads)]
    q_LDC, k_LDC = (torch.cat(parts, dim=1)[None] for parts in zip(*heads, strict=True))
    return q_LDC, k_LDC


def all_heads_at_once(problem: ImpulseProblem) -> Weights:
    q_LDC, k_LDC = (t_LHDE.transpose(1, 2).flatten(2) for t_LHDE in solve(problem))
    return q_LDC, k_LDC


def timed(way: Callable[[ImpulseProblem], Weights], problem: ImpulseProblem) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of CPU time over all threads, and the final loss."""
    clock_s, cpu_s = time.perf_counter(), time.process_time()
    weights = way(problem)
    clock_s, cpu_s = time.perf_counter() - clock_s, time.process_time() - cpu_s
    return clock_s, cpu_s, ImpulseLoss(draw(problem), problem)(*weights).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="vit_s")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full-steps", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dim, num_heads = MODELS[arguments.model]
    problem = ImpulseProblem((16, 16), dim, num_heads, filter_size=3, steps=arguments.steps)

    print(f"{arguments.model}: 256 tokens, width {dim}, {num_heads} heads, {arguments.threads} threads")
    ways = (one_head_at_a_time, all_heads_at_once)
    for way in ways:
        way(replace(problem, steps=5))
    rounds = [[timed(way, problem) for way in ways] for _ in range(arguments.rounds)]
    for place, way in enumerate(ways):
        clock_s, cpu_s, loss = (statistics.median(values) for values in zip(*(r[place] for r in rounds), strict=True))
        print(f"{way.__name__:20} {arguments.steps} steps: {clock_s:.2f} s, CPU time {cpu_s:.2f} s, loss {loss:.6e}")
    for unit, place in (("clock", 0), ("CPU time", 1)):
        ratios = [one[place] / all_[place] for one, all_ in rounds]
        print(f"ratio of {unit}: median {statistics.median(ratios):.1f}, rounds {[round(r, 1) for r in ratios]}")
    one_s, all_s = zip(*((one[0], all_[0]) for one, all_ in rounds), strict=True)
    note(f"impulse initialization, {arguments.model}: all heads at once", "one head at a time", all_s, one_s)
    if arguments.full_steps:
        clock_s, cpu_s, loss = timed(all_heads_at_once, replace(problem, steps=arguments.full_steps))
        print(
            f"{arguments.full_steps} steps, all heads at once: {clock_s:.1f} s, CPU time {cpu_s:.1f} s, loss {loss:.3e}"
        )


if __name__ == "__main__":
    main()
