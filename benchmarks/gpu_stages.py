"""The stages of ``gpu_proof.py`` as data: what is to be shown on a GPU, most valuable first.

``{device}``, ``{out}`` and ``{runs}`` in a command stand for "gpu" or "cpu", the stage's own folder and the run store.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
Command = tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One thing to be shown, by a command that leaves JSON files in ``{out}``.

    Attributes:
        minutes: the most that it may take; what goes on where it ended is stopped then, and continued later.
        rehearsal: the same in a small form, which a CPU does in a minute.
        afterwards: what is done with all that is there, also after a stop.
        goes_on: whether the same command goes on where it was stopped.
        images: sets without which the stage is left out.
    """

    name: str
    shows: str
    minutes: float
    command: Command
    rehearsal: Command
    afterwards: Command = ()
    goes_on: bool = False
    images: tuple[str, ...] = ()


def _script(name: str, *options: str) -> Command:
    return (sys.executable, str(_ROOT / "benchmarks" / name), "--device", "{device}", "--out", "{out}", *options)


def _check(name: str, *options: str) -> Command:
    return _script("gpu_checks.py", name, *options)


def _grid(suite: str, profile: str, *options: str) -> Command:
    command = (sys.executable, str(_ROOT / "launchers/grid.py"), "--suite", suite, "--profile", profile)
    return (*command, "--device", "{device}", "--runs", "{runs}", *options)


def _smoke(precision: str) -> Stage:
    few = ("--only", "train_fraction=0.03125")
    command = _grid("sample_efficiency", "smoke", "--precision", precision, "--retry-failed")
    return Stage(
        f"smoke_{precision}", f"a smoke grid in {precision}", 2, (*command, "--max-parallel", "8"), (*command, *few)
    )


def _suite(suite: str, seeds: int, *only: str, images: tuple[str, ...] = ("cifar10",)) -> Stage:
    """A suite at the profile "gpu", eight runs at a time, until the time is up."""
    build = (sys.executable, str(_ROOT / "leaderboards/build.py"), "--suite", suite, "--runs", "{runs}")
    chosen = ("--only", *only) if only else ()
    return Stage(
        suite,
        f"the suite {suite} at the profile gpu, {seeds} seeds",
        8,
        _grid(suite, "gpu", "--max-parallel", "8", "--retry-failed", "--seeds", str(seeds), *chosen),
        _grid(suite, "smoke", "--retry-failed", "--max-parallel", "1"),
        afterwards=(*build, "--profile", "{profile}"),
        goes_on=True,
        images=images,
    )


_TEST = (sys.executable, "-m", "pytest", "--rootdir", str(_ROOT), str(_ROOT / "tests"))

STAGES = (
    Stage("machine", "what the machine is", 1, _check("machine"), _check("machine")),
    Stage(
        "repeat",
        "30 steps of five models, twice and resumed at 15, give the same weights; synchronizations are counted",
        4,
        _check("repeat"),
        _check("repeat", "--small"),
    ),
    _smoke("fp32"),
    _smoke("bf16"),
    Stage(
        "models",
        "every model trains ten steps with deterministic algorithms",
        6,
        _check("models"),
        _check("models", "--small"),
    ),
    Stage("equal", "models, batches and losses equal the CPU's", 4, _check("equal"), _check("equal", "--small")),
    Stage("killed", "killed with SIGKILL and resumed, bit by bit", 2, _check("killed"), _check("killed", "--small")),
    Stage("gpu_tests", "the tests that need a GPU", 3, (*_TEST, "-m", "gpu", "-rs"), (*_TEST, "-m", "gpu", "-rs")),
    _suite("sample_efficiency", 5, "train_fraction=0.05", "train_fraction=0.1", "train_fraction=1.0"),
    Stage(
        "speed",
        "images/s and MFU, eager and compiled, ours and timm's",
        8,
        _script("gpu.py"),
        _script("gpu.py", "--small"),
    ),
    Stage(
        "packing",
        "runs an hour, one at a time and eight at a time",
        6,
        _script("gpu_packing.py"),
        _script("gpu_packing.py", "--small"),
    ),
    Stage("ranks", "two ranks, ZeRO 1 to 3, DeepSpeed against DDP", 5, _check("ranks"), _check("ranks", "--small")),
    _suite("init_datasets", 3, "dataset=cifar10"),
    _suite("init_heads", 3, images=("cifar100",)),
    _suite("cordonnier_cifar10", 1),
    Stage("all_tests", "the whole test-suite", 8, (*_TEST, "-x"), (*_TEST, "--collect-only")),
)
