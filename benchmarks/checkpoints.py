"""Times checkpoints: the seconds of each, on the disk at its end, and their share of a training's time.

    python benchmarks/checkpoints.py [--models convit_micro deit_b] [--rounds 7] [--folder DIR]

In turn with torch.save and fsync of the same weights and AdamW's state into one file, beside which ours has a digest, a
manifest and a rename. The share is that of wall seconds, at the default interval of the profile that has the model and
at the one that a training keeps to, see ``suite.training.checkpoint_times``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measured import note
from timing import describe_machine, load

from suite.models.registry import build_model
from suite.papers import get_suite
from suite.spec.experiment import Experiment
from suite.spec.profile import Profile
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training import checkpoint, distributed
from suite.training.checkpoint_files import Origin
from suite.training.checkpoint_times import pause_s
from suite.training.distributed import Ranks
from suite.training.optim import build_optimizer

_CPU = torch.device("cpu")
_ALONE = Ranks(0, 1, _CPU)
_REFERENCE = "torch.save and fsync"


def find(model: str) -> tuple[Experiment, Profile]:
    """Choose the suite's experiment of a model, in the first profile that has it."""
    profiles = [get_suite("convit_imagenet").profile(name) for name in ("laptop", "paper")]
    return next((one, profile) for profile in profiles for one in profile.experiments() if one.model == model)


def make_engine(experiment: Experiment) -> Any:
    """Make a rank's engine after one step, since AdamW has no state before."""
    model = build_model(experiment.model, num_classes=1000, image_size=experiment.image_size)
    engine = distributed.initialize(
        model, build_optimizer(model, experiment.recipe, _CPU), experiment.recipe, Resources()
    )
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    engine.step()
    return engine


def save_plainly(engine: Any, path: Path) -> None:
    """The reference: as little as a checkpoint may do."""
    with path.open("wb") as file:
        torch.save({"module": engine.module.state_dict(), "optimizer": engine._optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())


def measure(model: str, rounds: int, folder: Path) -> None:
    """Time both in turn, from the second checkpoint on, when there are older ones to drop; prints the medians."""
    experiment, profile = find(model)
    engine, run, steps = make_engine(experiment), RunDirectory(folder / model), itertools.count(1)
    run.path.mkdir()
    kinds: dict[str, Callable[[], object]] = {
        "ours": lambda: checkpoint.save(engine, run, _ALONE, Resources(), Origin(experiment=model), next(steps), {}),
        _REFERENCE: lambda: save_plainly(engine, folder / f"{model}.pt"),
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for turn in range(2 + rounds):
        for name, save in kinds.items():
            before = time.perf_counter(), time.process_time()
            save()
            if turn >= 2:
                seconds[name].append((time.perf_counter() - before[0], time.process_time() - before[1]))
    size_mb = (folder / f"{model}.pt").stat().st_size / 1e6
    every_s = profile.checkpoint_every_s
    for name, values in seconds.items():
        wall_s, processor_s = (statistics.median(column) for column in zip(*values, strict=True))
        shares = (
            f"{100 * wall_s / (pause + wall_s):.2f} % of the time at one every {pause:.0f} s"
            for pause in dict.fromkeys((every_s, pause_s(every_s, wall_s)))
        )
        cost = f"{wall_s:7.3f} s, {processor_s:7.3f} s of a core"
        print(f"{model:14s} {size_mb:7.1f} MB  {name:20s} {cost}: {', '.join(shares)}", flush=True)
    wall = {name: [value for value, _ in values] for name, values in seconds.items()}
    note(f"checkpoint of {model}", _REFERENCE, wall["ours"], wall[_REFERENCE])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["convit_micro", "deit_b"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's for temporary files)")
    options = parser.parse_args()
    print(f"{describe_machine()}; {load()}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for model in options.models:
            measure(model, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
