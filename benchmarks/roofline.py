"""The bound of a computation on this machine: its products at the rate of a large one, its bytes at that of a copy.

Both rates are measured beside what is bounded, with the same threads, so that a ratio that stops short is seen to stop
at the machine, or not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
from timing import time_in_turn

_SIDE = 1536  # of the square matrices
_NUM_COPIED = 1 << 26  # bytes, more than caches hold


class Rates(NamedTuple):
    """The most that this machine does with torch's threads."""

    flops_per_s: float  # of a large product
    bytes_per_s: float  # read and written by a copy

    def describe(self) -> str:
        return f"a product of {_SIDE}: {self.flops_per_s / 1e9:.0f} GFLOP/s; a copy: {self.bytes_per_s / 1e9:.1f} GB/s"


class Work(NamedTuple):
    """The least that a computation has to do, in fp32."""

    flops: float
    num_bytes: float  # of what it reads and writes, each tensor once

    def seconds_of_products(self, rates: Rates) -> float:
        return self.flops / rates.flops_per_s

    def seconds_of_memory(self, rates: Rates) -> float:
        return self.num_bytes / rates.bytes_per_s


def measure_rates(rounds: int) -> Rates:
    """Time a large product and a large copy; the median over so many rounds counts."""
    left, right, out = (torch.randn(_SIDE, _SIDE) for _ in range(3))
    source, copied = (torch.zeros(_NUM_COPIED, dtype=torch.uint8) for _ in range(2))
    product_s = seconds_of(lambda: torch.mm(left, right, out=out), rounds)
    return Rates(2 * _SIDE**3 / product_s, 2 * _NUM_COPIED / seconds_of(lambda: copied.copy_(source), rounds))


def seconds_of(run: Callable[[], object], rounds: int) -> float:
    """The median over the rounds, after one that is not counted."""
    return statistics.median(time_in_turn({"": run}, rounds, warmup=1)[""])
