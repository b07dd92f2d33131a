"""A training with two threads whose waiting threads sleep, as runs have it, beside one whose threads spin.

    python benchmarks/busy_cores.py [--busy 2] [--threads 2] [--rounds 9] [--model deit_micro]

By turns, each in a process of its own, beside so many busy processes (0: on idle cores). The weights at the end are
compared: they must be equal bit by bit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from timing import describe_machine, load, report, time_in_turn

_TRAIN = """
import hashlib, sys, torch, torch.nn.functional as F
from suite.models.registry import build_model
name, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(0)
model = build_model(name, num_classes=10, image_size=32)
optimizer = torch.optim.AdamW(model.parameters())
images, labels = torch.randn(128, 3, 32, 32), torch.randint(10, (128,))
print("ready", flush=True)
for line in sys.stdin:
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    print("done", flush=True)
weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
print(hashlib.sha256(weights.tobytes()).hexdigest(), flush=True)
"""


class Trainer:
    """A process that takes a step when it is told to.

    Args:
        policy: OMP_WAIT_POLICY, which says how OpenMP's threads wait; "" leaves it unset.
        threads: Number of threads that compute.
        model: Name of the model that is trained.
    """

    def __init__(self, policy: str, threads: int, model: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        environment |= {"OMP_WAIT_POLICY": policy} if policy else {}
        command = [sys.executable, "-c", _TRAIN, model, str(threads)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def step(self) -> None:
        """Take a step, and wait for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        self._read()

    def end(self) -> str:
        """End it; returns the digest of its weights."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        digest = self._read()
        self._process.wait()
        return digest


@contextmanager
def busy() -> Iterator[None]:
    """Keep a core busy with a process that only computes."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--model", default="deit_micro")
    options = parser.parse_args()
    trainers = {
        "spinning": Trainer("", options.threads, options.model),
        "sleeping": Trainer("PASSIVE", options.threads, options.model),
        "one thread": Trainer("", 1, options.model),
    }
    steps: dict[str, Callable[[], None]] = {name: trainer.step for name, trainer in trainers.items()}
    print(f"{describe_machine()}; {load()}")
    with ExitStack() as stack:
        for _ in range(options.busy):
            stack.enter_context(busy())
        seconds = time_in_turn(steps, options.rounds, clock=time.perf_counter)
    beside = f"{options.model}, {options.threads} threads beside {options.busy} busy processes"
    report(seconds, "spinning", f"training step, {beside}")
    digests = {name: trainer.end() for name, trainer in trainers.items()}
    print("weights equal bit by bit:", digests["spinning"] == digests["sleeping"])


if __name__ == "__main__":
    main()
