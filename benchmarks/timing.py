"""Timing two or more things in turn, so that a machine whose speed drifts slows all of them alike."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch


def time_in_turn(
    candidates: Mapping[str, Callable[[], object]], rounds: int, warmup: int = 2
) -> dict[str, list[float]]:
    """Seconds of each candidate in each round, after ``warmup`` untimed rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warmup + rounds):
        for name, run in candidates.items():
            started = time.perf_counter()
            run()
            if turn >= warmup:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def report(seconds: Mapping[str, list[float]], reference: str) -> None:
    """Median milliseconds of each, and the median over rounds of how many times faster than the reference it is."""
    for name, values in seconds.items():
        ratio = statistics.median(b / a for a, b in zip(values, seconds[reference], strict=True))
        speed = "" if name == reference else f"   {ratio:5.2f} times as fast as {reference}"
        print(f"{name:28s} {1e3 * statistics.median(values):9.2f} ms{speed}")


def describe_machine() -> str:
    """Processor, threads and versions, for quoting beside a figure."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    return f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"
