"""The suite's whole training loop beside a bare one of thirty lines, on the same model, images and recipe, in one run.

    python benchmarks/whole_loop.py [--models deit_micro convit_micro] [--steps 72] [--rounds 7]

Ours is a run's: loader, engine, learning rate, heartbeat, metrics lines, in a run directory; looks at attention and
evaluations are left out of both. In turn, in one process on one core. The figures are processor seconds, loader threads
included, which other work on the machine lengthens less than wall seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from measured import note
from timing import describe_machine, load

from imagesets.catalog import statistics as channel_statistics
from imagesets.prepared import find_info
from imagesets.stored_split import open_splits
from suite.models.registry import build_model
from suite.papers.convit.recipes import micro
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.predictions import Predictions
from suite.store.run_directory import RunDirectory
from suite.training import distributed
from suite.training.environment import StopRequest
from suite.training.loop import Interrupted, Training
from suite.training.measure.evaluate import Accuracy
from suite.training.optim import build_optimizer

_MODELS = ["deit_micro", "convit_micro"]
_FRACTION, _NUM_IMAGES = 0.05, 2500  # of CIFAR-10, the laptop's smallest
_LOG_EVERY = 18  # steps, as in a run of 937


class LoopAlone(Training):
    """A training that neither evaluates nor looks at attention, and ends without a checkpoint when asked to stop."""

    def _evaluate(self) -> Accuracy:
        nothing = np.zeros(0, np.int16)
        return Accuracy(0.0, 0.0, 0.0, num_images=1, predictions=Predictions(nothing, nothing))

    def _look_at_attention(self) -> None:
        pass

    def _save(self) -> None:
        pass


def bare_loop(experiment: Experiment, num_steps: int) -> Callable[[], object]:
    """Set a plain PyTorch training up: images in memory, flipped and normalized; a loss is read where ours logs one."""
    recipe, info = experiment.recipe, find_info(experiment.dataset)
    split = open_splits(info, "memory")["train"]
    pixels = torch.from_numpy(split.gather(np.arange(_NUM_IMAGES))).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(split.labels[:_NUM_IMAGES].copy())
    mean, std = (
        torch.tensor(values).reshape(3, 1, 1) * 255 for values in channel_statistics(info, experiment.normalization)
    )
    torch.manual_seed(0)
    options: dict[str, Any] = dict(experiment.model_options)
    model = build_model(experiment.model, num_classes=10, image_size=32, **options)
    optimizer = build_optimizer(model, recipe)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_steps)

    def train() -> None:
        losses = []
        num_epochs = num_steps * recipe.batch_size // _NUM_IMAGES + 1
        order = torch.cat([torch.randperm(_NUM_IMAGES) for _ in range(num_epochs)])[: num_steps * recipe.batch_size]
        for step, chosen in enumerate(order.split(recipe.batch_size)):
            images = pixels[chosen]
            flipped = torch.rand(len(images)) < 0.5
            images[flipped] = images[flipped].flip(-1)
            loss = F.cross_entropy(model(images.float().sub_(mean).div_(std)), labels[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
            if step % _LOG_EVERY == 0:
                torch.stack(losses).mean().item()
                losses.clear()

    return train


class StopAfter(StopRequest):
    """Asks a training to stop once it has taken so many steps, and says so as signals do."""

    def __init__(self, training: Training, num_steps: int) -> None:
        self._training, self._num_steps = training, num_steps

    def __bool__(self) -> bool:
        return self._training.progress.step >= self._num_steps


def our_loop(experiment: Experiment, num_steps: int, folder: Path, ranks: distributed.Ranks) -> Callable[[], object]:
    """Set a run up; each call of what is returned trains it.

    Args:
        experiment: Experiment of the run.
        num_steps: Number of steps of each call.
        folder: Folder of the run.
        ranks: This process alone.
    """
    run = RunDirectory(folder)
    run.create(experiment)
    training = LoopAlone(run, experiment, Resources(num_evaluations=1), ranks)

    def train() -> None:
        with suppress(Interrupted):
            training.run(StopAfter(training, num_steps))

    return train


def processor_seconds(train: Callable[[], object]) -> float:
    started = time.process_time()
    train()
    return time.process_time() - started


def compare(model: str, options: argparse.Namespace, ranks: distributed.Ranks, store: Path) -> None:
    """Time both loops in turn, and print medians over the rounds.

    Args:
        model: Name of the model.
        options: Options of the command line.
        ranks: This process alone.
        store: Folder for the runs.
    """
    recipe = DEIT_LAPTOP.model_copy(update={"epochs": 24.0})  # flipped images, as the bare loop's
    experiment = micro("convit" if model.startswith("convit") else "deit").model_copy(
        update={"train_fraction": _FRACTION, "recipe": recipe}
    )
    bare_s, ours_s = [], []
    for turn in range(options.rounds + 1):
        bare = processor_seconds(bare_loop(experiment, options.steps))
        ours = processor_seconds(our_loop(experiment, options.steps, store / f"{model}-{turn}", ranks))
        if turn:  # the first one is a warm-up
            bare_s.append(bare)
            ours_s.append(ours)
    note(f"whole training loop, {model} (processor seconds)", "bare PyTorch loop", ours_s, bare_s)
    ratio = statistics.median(a / b for a, b in zip(bare_s, ours_s, strict=True))
    images = options.steps * experiment.recipe.batch_size
    for name, seconds in {"bare PyTorch": bare_s, "ours": ours_s}.items():
        print(f"{model:14s} {name:14s} {images / statistics.median(seconds):8,.0f} images a processor second")
    spread = sorted(a / b for a, b in zip(bare_s, ours_s, strict=True))
    print(f"{model:14s} ours has {ratio:.3f} of the bare loop's rate ({spread[0]:.3f} to {spread[-1]:.3f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=_MODELS, default=_MODELS)
    parser.add_argument("--steps", type=int, default=72, help="steps of a round, a multiple of 18")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    ranks = distributed.start(Resources())
    print(f"{describe_machine()}; {load()}")
    with tempfile.TemporaryDirectory() as store:
        for model in options.models:
            compare(model, options, ranks, Path(store))
    print(load())
    distributed.stop()


if __name__ == "__main__":
    main()
