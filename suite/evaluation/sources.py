"""The files of other test sets, as their authors publish them -> images, and the classes that count as right.

NAME_data.npy, NAME_labels.npy    CIFAR-10.1
CORRUPTION.npy, labels.npy        CIFAR-10-C: each severity's images after the other's; its folder: all of them
FOLDER of class folders           ImageNet-V2 (classes by number), -R (a part of the classes, by WordNet id)
FOLDER of such folders            ImageNet-C: CORRUPTION/SEVERITY
real.json, --images FOLDER        ImageNet-ReaL: the right classes of each validation image, by its number
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from imagesets.originals.folders import EXTENSIONS
from suite.base.errors import DataError

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
    except (OSError, ValueError) as error:
        raise DataError(f"{source} cannot be read as a test set: {error}") from error


def _read_array(path: Path) -> Iterator[TestSet]:
    of_its_own = path.with_name(path.name.replace("_data.npy", "_labels.npy"))
    is_in_parts = of_its_own == path
    labels_path = path.with_name("labels.npy") if is_in_parts else of_its_own
    pixels, labels = np.load(path, mmap_mode="r"), np.load(labels_path).astype(np.int64)
    side = pixels.shape[1] if pixels.ndim == 4 else 0
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), side, side, 3):
        raise DataError(f"{path} holds {pixels.dtype}{pixels.shape}, expected uint8 squares for {len(labels)} labels")
    share = len(labels) // (_SEVERITIES if is_in_parts else 1)
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
    if not isinstance(answers, list) or sorted(found) != list(range(1, len(answers) + 1)):
        raise DataError(f"{images} has {len(found)} validation images, expected the {len(answers)} of {source}")
    paths = [found[number] for number in sorted(found)]
    return TestSet("", paths, np.zeros(len(paths), np.int64), answers=tuple(map(tuple, answers)))
