"""Runs of a few steps on the packaged images, as the checks on a GPU need them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suite.papers import get_suite
from suite.papers.convit import recipes as convit
from suite.papers.shared.deit import DEIT
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

_NUM_IMAGES = 320  # for training, in the packaged set


def shorten(experiment: Experiment, steps: int, batch_size: int) -> Experiment:
    """The same model and recipe for a few steps on the packaged images, from a fresh start."""
    changes = {"batch_size": batch_size, "epochs": steps * batch_size / _NUM_IMAGES, "warmup_epochs": 0.0}
    recipe = experiment.recipe.model_copy(update={**changes, "milestones": ()})
    fresh = {"kind": "training", "kind_options": {}, "parents": (), "train_fraction": 1.0}
    return experiment.model_copy(update={"dataset": "cifar10_sample", "recipe": recipe, **fresh})


def shrink(experiment: Experiment) -> Experiment:
    """The same kind of network, which a CPU trains in no time."""
    smaller = {"width": 8} if experiment.model.startswith("resnet") else {"depth": 2}
    options = {**experiment.model_options, **smaller}
    return experiment.model_copy(update={"model_options": options, "image_size": min(experiment.image_size, 64)})


def five_models() -> dict[str, Experiment]:
    """One of each kind of training, by the model's name, as the suites have them."""
    of_suites = {
        "vit_t": ("init_datasets", "gpu"),  # clipping, RandAugment
        "resnet18_cifar": ("cordonnier_cifar10", "gpu"),
        "cmhsa": ("cmhsa_cifar100", "paper"),
        "sa_learned": ("cordonnier_cifar10", "gpu"),
    }
    found = {"deit_ti": convit.paper("deit", "Ti")}  # 224 pixels, DeiT's whole augmentation
    for model, (suite, profile) in of_suites.items():
        experiments = get_suite(suite).profile(profile).experiments()
        found[model] = next(experiment for experiment in experiments if experiment.model == model)
    return found


def of_model(model: str, image_size: int, precision: str, steps: int, batch_size: int) -> Experiment:
    """Make a short experiment with DeiT's recipe for any model.

    Args:
        model: its name.
        image_size: pixels.
        precision: "fp32" or "bf16".
        steps, batch_size: of the training.
    """
    recipe: Recipe = DEIT.model_copy(update={"precision": precision, "drop_path": 0.0})
    experiment = Experiment(model=model, dataset="cifar10_sample", image_size=image_size, recipe=recipe)
    return shorten(experiment, steps, batch_size)


def new_run(folder: Path, experiment: Experiment) -> RunDirectory:
    run = RunDirectory(folder)
    run.create(experiment)
    return run


def start(run: RunDirectory, resources: Resources) -> subprocess.Popen[bytes]:
    """Train a run in a process of its own, as grids do."""
    command = [sys.executable, "-m", "suite.execute", str(run.path), "--resources", resources.model_dump_json()]
    with run.log_path.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})


def losses(run: RunDirectory) -> list[float]:
    return [line["loss"] for line in run.read_metrics() if "loss" in line]


def newest_lines(run: RunDirectory, count: int) -> list[str]:
    return run.log_path.read_text(encoding="utf-8").splitlines()[-count:]


def write_report(out: Path, name: str, report: Any) -> None:
    """As JSON beside the stage's log, and on the terminal."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1)
    (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(text, flush=True)


def each_model(names: list[str], small: bool) -> Iterator[str]:
    """All of them; in a rehearsal those that a CPU builds in no time."""
    return (name for name in names if not small or not any(size in name for size in ("_b", "_s")))


def empty_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
