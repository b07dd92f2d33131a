"""DeiT's augmentation of CIFAR-10 in batches of 64: several steps' images prepared as one, beside step by step.

    python benchmarks/steps_at_once.py [--rounds 7]

What it takes one core to load and augment 64 steps, by the loader itself. "on a device" counts what is left to the CPU
where a GPU augments: PyTorch's meta device starts the same operations, and computes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from timing import describe_machine, load, report, time_in_turn

from imagesets.loader import ImageLoader
from suite.papers import get_suite

_STEPS = 64


def prepare(images: ImageLoader, at_once: int, device: torch.device) -> Callable[[], None]:
    """Make a function that prepares the steps, so many at once."""

    def run() -> None:
        with patch("imagesets.loader._steps_at_once", return_value=at_once):
            for _ in images.train_batches(0, _STEPS, device=device):
                pass

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe_machine()}; {load()}")
    images = ImageLoader(get_suite("sample_efficiency").profile("desktop").experiments()[0])
    for title, device in {"on the CPU": torch.device("cpu"), "on a device": torch.device("meta")}.items():
        candidates = {f"{number} at once": prepare(images, number, device) for number in (1, 2, 8, 16)}
        seconds = time_in_turn(candidates, options.rounds, clock=time.process_time)
        report(seconds, "1 at once", f"augmenting {_STEPS} steps {title}")


if __name__ == "__main__":
    main()
