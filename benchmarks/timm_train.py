"""Our training runs beside timm's train.py, and our loaders beside its own, on the same photographs, in one run.

    git clone https://github.com/huggingface/pytorch-image-models CHECKOUT
    git -C CHECKOUT checkout aa4b5850c1543fa488abf260f18390eda46cf85d
    python benchmarks/timm_train.py --timm CHECKOUT [--part training|loaders] [--cores 2] [--rounds 3]

Training: DeiT-Ti and ConViT-Ti at 224, AdamW, DeiT's augmentation at a fixed strength and without repeated images,
which timm has for several processes alone; float32. Each side is a process of its own, ``train.py`` and
``suite.execute``, in turn, with as many threads that compute and that load; all steps are counted but the first ones.
Loading: batches of 64, as many workers as cores; with the same augmentation but for mixup, and with crop and flip
alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from measured import TIMM_VARIABLE, note
from one_run import images_per_s, train
from photographs import PHOTOGRAPHS, make_image_sets, tiles
from timing import Contender, describe_machine, load, rates_in_turn

from imagesets.loader import ImageLoader
from suite.base.torchvision_ops import make_torchvision_importable
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training.environment import keep_freed_memory

_COMMIT = "aa4b5850c1543fa488abf260f18390eda46cf85d"
FORMATS = ("webdataset", "ffcv")
_SUBSET = "photographs_for_timm"
_NUM_IMAGES, _SIZE = 640, 224
_MODELS = {"deit_ti": ("deit_tiny_patch16_224", 1.05), "convit_ti": ("convit_tiny", 1.4)}  # timm's name, the goal
_LOADED, _LOADERS_GOAL = 64, 2.0  # images of a batch; times timm's rate
_START_TRAIN_PY = """
import runpy, sys
from suite.base.torchvision_ops import make_torchvision_importable
make_torchvision_importable()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_UPDATE = re.compile(r"Train: 0 \[ *(\d+)/.*?Time: ([\d.]+)s")
_RAND_AUGMENT = "rand-m9-inc1"  # DeiT's but for its noise, by which timm asks Pillow for 0 bits, and newer ones raise
_MIXED = {"mixup": DEIT.mixup, "cutmix": DEIT.cutmix, "mix_switch_probability": DEIT.mix_switch_probability}
_UNMIXED = dict.fromkeys(_MIXED, 0.0)


@dataclass(frozen=True)
class Sides:
    """Where both sides find what they run and read.

    Attributes:
        checkout: Checkout of timm's repository, from which its side also takes timm.
        classes: Folder with a folder of photographs for each class, for timm.
        folder: Folder of our prepared sets, which hold the same photographs.
        options: Options of the command line.
    """

    checkout: Path
    classes: Path
    folder: Path
    options: argparse.Namespace


class Comparison(NamedTuple):
    """Images a second of both sides, round by round, and how many times as fast as theirs ours is to be."""

    title: str
    reference: str
    theirs: Sequence[float]
    ours: Sequence[float]
    goal: float


def deit_recipe(batch_size: int, num_steps: int, **changes: float) -> Recipe:
    """DeiT's, for so many steps on the photographs."""
    fields = {"batch_size": batch_size, "epochs": num_steps * batch_size / _NUM_IMAGES, "mix_group": 0}
    alone = {
        "rand_augment": _RAND_AUGMENT,
        "repeated_augmentation": 1,
        "precision": "fp32",
        "warmup_epochs": 0.0,
        "schedule_lag_epochs": 0,
    }
    return DEIT.model_copy(update={**fields, **alone, **changes})


def timm_options() -> list[str]:
    """The same recipe for train.py, whose own defaults are what is left out."""
    optimizer = ["--opt", "adamw", "--lr", str(DEIT.learning_rate), "--weight-decay", str(DEIT.weight_decay)]
    mixing = ["--mixup", str(DEIT.mixup), "--cutmix", str(DEIT.cutmix), "--drop-path", str(DEIT.drop_path)]
    pixels = ["--aa", _RAND_AUGMENT, "--reprob", str(DEIT.random_erasing), "--train-interpolation", "bicubic"]
    return [*optimizer, *mixing, *pixels, "--warmup-epochs", "0", "--smoothing", str(DEIT.label_smoothing)]


# -- the photographs


def make_subset(folder: Path, photographs: Path | None) -> Path:
    """Have the first tiles of every photograph as class folders, and prepared; returns the class folders."""
    make_image_sets(folder, photographs, {PHOTOGRAPHS: ()})
    classes = folder / "tiles" / _SUBSET
    if not classes.exists():
        partial = classes.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        num_classes = len(list(tiles(folder).iterdir()))
        for split, number in (("train", _NUM_IMAGES), ("val", num_classes)):
            files = sorted((tiles(folder).parent / split).rglob("*.jpg"), key=lambda path: (path.stem, path.parent))
            for path in files[:number]:  # the first of each class, then the second
                target = partial / split / path.parent.name / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        partial.rename(classes)
    make_image_sets(folder, photographs, {_SUBSET: FORMATS})
    return classes


# -- training


def timm_rate(sides: Sides, model: str) -> float:
    """Images a second of train.py's own log, for timm's name of a model; it is ended once it has taken enough steps."""
    options = sides.options
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as output:
        process = subprocess.Popen(
            [*timm_command(sides), "--model", model, "--output", output],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
            env={**os.environ, "PYTHONPATH": timm_path(sides), "OMP_NUM_THREADS": str(options.cores)},
        )  # fmt: skip
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := _UPDATE.search(line):
                seconds.append(float(found[2]))
            if len(seconds) == options.skipped + options.steps:
                process.terminate()
                break
        process.communicate()
    if len(seconds) < options.skipped + options.steps:
        sys.exit(f"timm's train.py ended after {len(seconds)} steps, expected more:\n{''.join(lines[-20:])}")
    return float(options.batch / statistics.fmean(seconds[options.skipped :]))


def timm_command(sides: Sides) -> list[str]:
    """train.py on the photographs, but for the model and where it writes."""
    num_classes, batch, cores = len(list((sides.classes / "train").iterdir())), sides.options.batch, sides.options.cores
    start = [sys.executable, "-c", _START_TRAIN_PY, str(sides.checkout / "train.py")]
    data = ["--data-dir", str(sides.classes), "--val-split", "", "--num-classes", str(num_classes), "--device", "cpu"]
    sizes = ["-b", str(batch), "--workers", str(cores), "--epochs", "1", "--log-interval", "1"]
    return [*start, *data, *sizes, *timm_options()]


def timm_path(sides: Sides) -> str:
    """PYTHONPATH with timm's checkout first."""
    return os.pathsep.join([str(sides.checkout), *filter(None, [os.environ.get("PYTHONPATH")])])


def our_rate(sides: Sides, model: str) -> float:
    """Images a second of a run's own metrics, for our name of a model."""
    options = sides.options
    num_steps = options.skipped + options.steps
    experiment = Experiment(
        model=model, dataset=_SUBSET, image_size=_SIZE, recipe=deit_recipe(options.batch, num_steps, **_MIXED)
    )
    resources = Resources(
        data_dir=str(sides.folder), loader="webdataset", threads_per_rank=options.cores, num_evaluations=1
    )
    with tempfile.TemporaryDirectory() as store:
        rates = images_per_s(train(Path(store), experiment, resources))
    return float(statistics.harmonic_mean(rates[options.skipped :]))


def compare_training(sides: Sides) -> Iterator[Comparison]:
    """Train each model by both, in turn."""
    options = sides.options
    for model in options.models:
        name, goal = _MODELS[model]
        theirs, ours = zip(
            *((timm_rate(sides, name), our_rate(sides, model)) for _ in range(options.rounds)), strict=True
        )
        title = f"training {model} at {_SIZE}, batch {options.batch}, {options.cores} cores"
        yield Comparison(title, "timm's train.py", theirs, ours, goal)


# -- loaders


def augmentations() -> dict[str, Recipe]:
    """List the recipes by which both sides load."""
    whole = deit_recipe(_LOADED, 1, **_UNMIXED)
    plain = {"rand_augment": "", "color_jitter": 0.0, "random_erasing": 0.0}
    return {"DeiT's augmentation without mixup": whole, "crop and flip": whole.model_copy(update=plain)}


def timm_loader(checkout: Path, classes: Path, recipe: Recipe, cores: int) -> Callable[[], int]:
    """timm's create_loader as train.py calls it on a CPU, without mixup; its workers live on from round to round.

    Args:
        checkout: Checkout of timm's repository.
        classes: Folder with a folder of photographs for each class.
        recipe: Recipe with the augmentation.
        cores: Number of workers.
    """
    make_torchvision_importable()
    sys.path.insert(0, str(checkout))
    import timm
    from timm.data import create_dataset, create_loader

    assert Path(timm.__file__).is_relative_to(checkout), f"expected timm of {checkout}, found {timm.__file__}"
    dataset = create_dataset("", root=str(classes), split="train", is_training=True)
    loader = create_loader(
        dataset, (3, _SIZE, _SIZE), _LOADED, is_training=True, num_workers=cores, interpolation="bicubic",
        auto_augment=recipe.rand_augment or None, color_jitter=recipe.color_jitter or None,
        re_prob=recipe.random_erasing, re_mode="pixel", device=torch.device("cpu"),
    )  # fmt: skip
    return lambda: sum(len(images) for images, _ in loader)


def our_loader(folder: Path, storage_format: str, recipe: Recipe, cores: int) -> Callable[[], int]:
    """A run's loader; each call goes on where the one before ended.

    Args:
        folder: Folder of the prepared sets.
        storage_format: Format in which the photographs are read.
        recipe: Recipe with the augmentation.
        cores: Number of workers.
    """
    keep_freed_memory()
    experiment = Experiment(model="none", dataset=_SUBSET, image_size=_SIZE, recipe=recipe)
    images = ImageLoader(experiment, Resources(data_dir=str(folder), loader=storage_format, num_workers=cores))
    num_batches = _NUM_IMAGES // _LOADED
    first = itertools.count(step=num_batches)

    def run() -> int:
        start = next(first)
        return sum(len(batch.images) for batch in images.train_batches(start, start + num_batches))

    return run


def compare_loaders(sides: Sides) -> Iterator[Comparison]:
    """Read the photographs by both, in turn, on one core and on all that are asked for."""
    everything = itertools.product(augmentations().items(), sorted({1, sides.options.cores}))
    for (augmentation, recipe), cores in everything:
        contenders = {"timm": Contender(cores, timm_loader, (sides.checkout, sides.classes, recipe, cores))}
        for storage_format in FORMATS:
            contenders[storage_format] = Contender(cores, our_loader, (sides.folder, storage_format, recipe, cores))
        rates = rates_in_turn(contenders, sides.options.rounds)
        for storage_format in FORMATS:
            title = f"loading by {storage_format} at {_SIZE}, {augmentation}, {cores} cores"
            yield Comparison(title, "timm's create_loader", rates["timm"], rates[storage_format], _LOADERS_GOAL)


PARTS = {"training": compare_training, "loaders": compare_loaders}


def report(comparison: Comparison) -> None:
    """Print both sides' median rates, and the median over rounds of the ratio, with its spread."""
    title, reference, theirs, ours, goal = comparison
    note(title, reference, theirs, ours)
    ratios = sorted(b / a for a, b in zip(theirs, ours, strict=True))
    print(
        f"{title}: ours {statistics.median(ours):.1f} images/s, {reference} {statistics.median(theirs):.1f}: "
        f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}] (goal {goal})",
        flush=True,
    )


def find_checkout(path: Path | None) -> Path:
    """The folder of timm's repository; says so where it is another commit than the one that is compared with.

    Raises:
        SystemExit: if there is none.
    """
    if path is None or not (path / "train.py").exists():
        sys.exit(f"{path or 'no folder'}: expected a checkout of timm's repository with train.py; name it: --timm DIR")
    found = subprocess.run(
        ["git", "-C", str(path), "rev-parse", "HEAD"], capture_output=True, encoding="utf-8", errors="replace"
    )
    if found.stdout.strip() != _COMMIT:
        print(f"timm is at commit {found.stdout.strip() or 'unknown'}, the published figures are of {_COMMIT}")
    return path.resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--timm", type=Path, default=os.environ.get(TIMM_VARIABLE), help="a checkout, see above")
    parser.add_argument("--part", choices=list(PARTS), help="default: both")
    parser.add_argument("--models", nargs="+", choices=list(_MODELS), default=list(_MODELS))
    parser.add_argument("--batch", type=int, default=16, help="images of a training step")
    parser.add_argument("--steps", type=int, default=6, help="steps of each training that are timed")
    parser.add_argument("--skipped", type=int, default=2, help="steps before them")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--photographs", type=Path, help="a folder of large JPEGs; default: Debian's wallpapers")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "loader_benchmark")
    options = parser.parse_args()
    checkout = find_checkout(options.timm)
    print(describe_machine(), load())
    classes = make_subset(options.folder, options.photographs)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.cores :])  # of both sides' processes
    sides = Sides(checkout, classes, options.folder, options)
    for part in [options.part] if options.part else PARTS:
        for comparison in PARTS[part](sides):
            report(comparison)
    print(load())


if __name__ == "__main__":
    main()
