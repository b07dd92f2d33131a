"""Saved weights on other test sets than the suite's, whose files are read as their authors publish them.

A finished run, or one of timm's models with a local file of weights -> a network, and how images are shown to it.
A file or folder -> test sets: images, and the classes that count as right:

NAME_data.npy, NAME_labels.npy    CIFAR-10.1
CORRUPTION.npy, labels.npy        CIFAR-10-C: each severity's images after the other's; its folder: all of them
FOLDER of class folders           ImageNet-V2 (classes by number), -R (a part of the classes, by WordNet id)
FOLDER of such folders            ImageNet-C: CORRUPTION/SEVERITY
real.json, --images FOLDER        ImageNet-ReaL: the right classes of each validation image, by its number
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from imagesets.augment.shuffling import Shuffle
from imagesets.catalog import RGB, statistics
from imagesets.decode import decode_centered
from imagesets.loader import Batch
from imagesets.originals.folders import EXTENSIONS
from imagesets.prefetch import stream_batches
from imagesets.prepared import find_info, find_prepared
from suite.base.errors import DataError, SpecError
from suite.base.files import sha256_of
from suite.base.reading import describe
from suite.export.folder import finished_result
from suite.plugins.find_plugin import find_model
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.measure.evaluate import evaluate
from suite.training.start import trained_network

_SEVERITIES = 5
_NUMBER_OF_IMAGE = re.compile(r"ILSVRC2012_val_(\d{8})\.")


@dataclass(frozen=True)
class TestSet:
    """N images with their labels, as a network is tested on them.

    Args:
        part: the part of the source, such as a corruption and its severity; "" where it has no parts.
        images: their files, or pixels (N, side, side, 3).
        among: classes that are told apart, where they are a part of those that the network knows; else ().
        answers: the right classes of each image where several may be, in place of labels; else ().
    """

    part: str
    images: Sequence[Path] | NDArray[np.uint8]
    labels: NDArray[np.int64]
    among: tuple[int, ...] = ()
    answers: tuple[tuple[int, ...], ...] = ()


def read_sources(source: Path, classes: Sequence[str], images: Path | None) -> Iterator[TestSet]:
    """Read the test sets in a file or folder.

    Args:
        classes: names of the network's classes, in the order of its outputs.
        images: folder of the validation images that a file of labels alone is about.

    Raises:
        DataError: it has none of the known layouts, or other classes than the network.
    """
    try:
        if source.suffix == ".json":
            yield _read_real(source, images)
        elif source.suffix == ".npy":
            yield from _read_array(source)
        elif (source / "labels.npy").is_file():
            for path in sorted(source.glob("*.npy")):
                if path.name != "labels.npy":
                    yield from _read_array(path)
        else:
            yield from _read_folders(source, source, classes)
    except (OSError, ValueError, TypeError, AttributeError, EOFError, RecursionError, BadZipFile) as error:
        raise DataError(f"{source} cannot be read as a test set: {describe(error)}") from error


def _read_array(path: Path) -> Iterator[TestSet]:
    of_its_own = path.with_name(path.name.replace("_data.npy", "_labels.npy"))
    is_in_parts = of_its_own == path
    labels_path = path.with_name("labels.npy") if is_in_parts else of_its_own
    pixels, labels = np.load(path, mmap_mode="r"), np.load(labels_path).astype(np.int64, casting="same_kind")
    side = pixels.shape[1] if pixels.ndim == 4 else 0
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), side, side, 3):
        raise DataError(f"{path} holds {pixels.dtype}{pixels.shape}, expected uint8 squares for {len(labels)} labels")
    num_parts = _SEVERITIES if is_in_parts else 1
    share = len(labels) // num_parts
    if labels.ndim != 1 or not share or len(labels) % num_parts:
        raise DataError(
            f"{labels_path} has the shape {labels.shape}, expected a label an image in {num_parts} equal parts"
        )
    for number, first in enumerate(range(0, len(labels), share), start=1):
        part = slice(first, first + share)
        yield TestSet(f"{path.stem}/{number}" if is_in_parts else "", pixels[part], labels[part])


def _read_folders(source: Path, folder: Path, classes: Sequence[str]) -> Iterator[TestSet]:
    below = sorted(path for path in folder.iterdir() if path.is_dir())
    paths = [path for one in below for path in sorted(one.iterdir()) if path.suffix.lower() in EXTENSIONS]
    if below and not paths:
        for one in below:
            yield from _read_folders(source, one, classes)
        return
    known = {str(place): place for place in range(len(classes))} | {name: place for place, name in enumerate(classes)}
    strange = [one.name for one in below if one.name not in known]
    if strange or not below:
        found, expected = strange[:3], classes[:3]
        raise DataError(f"{folder} has no folders of the network's classes: found {found}, expected {expected} …")
    labels = np.array([known[path.parent.name] for path in paths])
    among = tuple(sorted({known[one.name] for one in below}))  # a folder without images is a class, too
    part = folder.relative_to(source).as_posix().strip(".")
    yield TestSet(part, paths, labels, among if len(among) < len(classes) else ())


def _read_real(source: Path, images: Path | None) -> TestSet:
    if images is None:
        raise DataError(f"{source} has labels alone: name the folder of ImageNet's validation images with --images")
    answers = json.loads(source.read_bytes())
    found = {int(match[1]): path for path in images.rglob("*") if (match := _NUMBER_OF_IMAGE.match(path.name))}
    if any(type(one) is not int or one < 0 for right in answers for one in right):
        raise DataError(f"{source} has answers that are none, expected a list of classes for each image")
    if not isinstance(answers, list) or sorted(found) != list(range(1, len(answers) + 1)):
        raise DataError(f"{images} has {len(found)} validation images, expected the {len(answers)} of {source}")
    paths = [found[number] for number in sorted(found)]
    return TestSet("", paths, np.zeros(len(paths), np.int64), answers=tuple(map(tuple, answers)))


@dataclass(frozen=True)
class Tested:
    """A network and what its test images pass through, as in its own evaluation.

    Args:
        name: the run's id, or ``timm:NAME`` with the name of its weights' file and eight digits of their SHA-256.
        classes: names of the network's outputs.
        own_top1_percent: accuracy on its own test set; None where it has no record of it.
        size, test_crop, statistics: side of an input, share of an image that is kept, and its mean and deviation.
        shuffle: Permutation of the finished images.
    """

    name: str
    network: nn.Module
    classes: Sequence[str]
    own_top1_percent: float | None
    size: int
    test_crop: float
    statistics: tuple[RGB, RGB]
    precision: str = "fp32"
    shuffle: Callable[[Tensor], Tensor] = lambda images: images

    def evaluate(self, test_set: TestSet, ranks: Ranks) -> dict[str, float | None]:
        """Test the network on the only rank; on a part of the classes it answers by the best of these."""
        low, high = test_set.labels.min(), test_set.labels.max()
        if low < 0 or (self.classes and high >= len(self.classes)):
            known = f" to {len(self.classes) - 1}" if self.classes else " or more"
            raise DataError(f"the test set has classes {low} to {high}, expected 0{known}")
        absent = set(range(len(self.classes))).difference(test_set.among) if test_set.among else ()
        places = torch.tensor(sorted(absent), dtype=torch.int64, device=ranks.device)
        labels = test_set.labels

        def batches(batch_size: int, *_: object) -> Iterator[Batch]:
            chosen = torch.arange(len(labels)).split(batch_size)
            return stream_batches(partial(self._load, test_set), self._finish, chosen, ranks.device)

        # all that ``evaluate`` asks of an ImageLoader
        loader: Any = SimpleNamespace(num_test=len(labels), test_labels=labels, test_batches=batches)
        with self.network.register_forward_hook(lambda *call: call[2].index_fill(1, places, -torch.inf)):
            found = evaluate(self.network, loader, ranks, self.precision)
        if not test_set.answers:
            numbers = {"top1_percent": found.top1_percent, "top5_percent": found.top5_percent, "test_loss": found.loss}
            return {"images": found.num_images, **numbers}
        answered = zip(test_set.answers, found.predictions.predicted.tolist(), strict=True)
        judged = [one in right for right, one in answered if right]
        top1 = 100 * sum(judged) / max(len(judged), 1)
        return {"images": len(judged), "top1_percent": top1, "top5_percent": None, "test_loss": None}

    def _load(self, test_set: TestSet, chosen: Tensor) -> Batch:
        out = np.empty((len(chosen), self.size, self.size, 3), np.uint8)
        for index, pixels in zip(chosen.tolist(), out, strict=True):
            image = test_set.images[index]
            if isinstance(image, np.ndarray) and image.shape == pixels.shape:  # it is seen whole
                pixels[...] = image
                continue
            try:
                data = image.read_bytes() if isinstance(image, Path) else image
                decode_centered(data, floor(self.size / self.test_crop), self.size, pixels)
            except (OSError, ValueError) as error:
                raise DataError(f"image {index} of the test set, {image}, cannot be decoded: {error}") from error
        return Batch(torch.from_numpy(out), torch.from_numpy(test_set.labels)[chosen])

    def _finish(self, batch: Batch) -> Batch:
        mean, std = (255 * torch.tensor(one, device=batch.images.device).view(3, 1, 1) for one in self.statistics)
        return Batch(self.shuffle(batch.images.permute(0, 3, 1, 2).float().sub_(mean).div_(std)), batch.labels)


def open_run(run: RunDirectory, data_dir: Path | None) -> Tested:
    """Open a finished run's network; its image set need not be there."""
    result = finished_result(run)
    experiment = result.experiment
    info = find_info(experiment.dataset, data_dir)
    classes = info.class_names or (_synsets() if info.num_classes == 1000 else ())
    if not classes and (prepared := find_prepared(info.name, None, data_dir)) is not None:
        classes = tuple(prepared[1].classes)
    return Tested(
        run.id, trained_network(run, experiment, info.num_classes), classes, result.top1_percent,
        experiment.image_size, experiment.recipe.test_crop, statistics(info, experiment.normalization),
        experiment.recipe.precision, Shuffle(experiment),
    )  # fmt: skip


def open_timm(words: str, weights: Path) -> Tested:
    """Open one of timm's models with a local file of weights, which is read as tensors alone.

    SpecError where timm has no such model, or the weights are none of it.
    """
    import timm

    name = find_model(words).name
    try:
        network = timm.create_model(name)
        network.load_state_dict(timm.models.load_state_dict(str(weights), weights_only=True))
    except (RuntimeError, OSError, ValueError, UnpicklingError, SafetensorError) as error:
        raise SpecError(f"{words} with {weights}: {describe(error)}") from error
    shown = timm.data.resolve_data_config(model=network)
    classes = _synsets() if network.num_classes == 1000 else tuple(map(str, range(network.num_classes)))
    crop, images = shown["crop_pct"], (shown["mean"], shown["std"])
    called = f"{words}, {weights.name} {sha256_of(weights)[:8]}"
    return Tested(called, network, classes, None, shown["input_size"][1], crop, images)


def _synsets() -> tuple[str, ...]:
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo("imagenet-1k").label_names())
