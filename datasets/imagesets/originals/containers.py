"""Image sets as tables of offsets: the files of each split -> labels and places of their images.

``parquet``, ``mds`` and ``beton`` list a file; what they share is here.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import Split
from imagesets.originals.samples import MemberSamples, Original, OriginalSamples, list_some
from imagesets.originals.shards import name_classes, read_classes
from suite.base.errors import DataError

Files = dict[Split, list[Path]]

WORDS: dict[Split, tuple[str, ...]] = {"train": ("train",), "test": ("val", "validation", "valid", "test")}
IMAGES = ("image", "img", "x")  # columns
LABELS = ("label", "fine_label", "y")
_NUM_READERS = 4  # files that are listed at once
_PART = re.compile(r"-(\d+)-of-(\d+)\b")


class Listed(NamedTuple):
    """One file's images in its order.

    Attributes:
        labels: (N,).
        places: offset, length, height and width of pixels, offset and length of the compressed page: (N, 6). The last
            four are 0 where there are none.
        classes: the names that the file gives its classes, if any.
        codec: the compression of pages.
    """

    path: Path
    labels: NDArray[np.int64]
    places: NDArray[np.int64]
    classes: tuple[str, ...] = ()
    codec: str = ""


def find_files(folder: Path, endings: tuple[str, ...]) -> Files:
    """The files of each split: those whose names, or their folders', have its word.

    Raises:
        DataError: files of one split in several folders or under several words, or one of "00003-of-00294" is missing.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        if path.name.lower().endswith(endings) and not path.name.startswith("."):
            words = find_words(path.name) or (find_words(path.parent.name) if path.parent != folder else set())
            for word in words if len(words) == 1 else ():
                found.setdefault(word, []).append(path)
    if "val" in found or "validation" in found or "valid" in found:
        found.pop("test", None)  # as ImageNet's, which has no labels
    files: Files = {split: [p for word in words for p in found.get(word, ())] for split, words in WORDS.items()}
    for split, paths in files.items():
        if len({path.parent for path in paths}) > 1 or sum(word in found for word in WORDS[split]) > 1:
            shown = list_some([str(path.relative_to(folder)) for path in paths])
            raise DataError(f"{folder} has several {split} sets: {shown}. Make a folder of the files of one.")
        _check_parts(paths)
    return files


def find_words(name: str) -> set[str]:
    """The words for splits in a name."""
    return {*re.split(r"[^a-z]+", name.lower())} & {word for words in WORDS.values() for word in words}


def _check_parts(paths: list[Path]) -> None:
    parts = {match[0]: match for path in paths if (match := _PART.search(path.name))}
    for match in parts.values():
        for number in range(int(match[2])):
            expected = f"-{number:0{len(match[1])}d}-of-{match[2]}"
            if expected not in parts:
                raise DataError(f"{paths[0].parent} lacks the file …{expected}…, found {len(paths):,}. Bring it again.")


def find_column(path: Path, found: Sequence[str], expected: tuple[str, ...]) -> str:
    """The one of these columns that is there."""
    names = [name for name in found if name in expected]
    if len(names) != 1:
        raise DataError(
            f"{path} has columns {list_some(found, 20)}; expected one of {' or '.join(IMAGES)} with images, and one of "
            f"{' or '.join(LABELS)}. Rename them, or convert it to class folders."
        )
    return names[0]


def open_listed(
    folder: Path, files: Files, list_file: Callable[[Path], list[Listed]], num_classes: int | None, num_kept: int | None
) -> Original:
    """The samples of files, in the order that they have there.

    Args:
        list_file: lists one of them, or those that it names.
        num_classes: number of classes that there have to be; None takes it from the files.
        num_kept: number of first classes whose samples are kept; None keeps all.

    Raises:
        DataError: if a split has no files, a file is broken or has a label out of range or other classes, or a class
            has no images.
    """
    notes: list[str] = []
    classes = read_classes(folder, notes)
    samples: dict[Split, OriginalSamples] = {}
    for split, paths in files.items():
        if not paths:
            some = [str(path) for found in files.values() for path in found]
            raise DataError(f"{folder} has no {split} files beside {list_some(some)}: name one {WORDS[split][0]}….")
        with ThreadPoolExecutor(_NUM_READERS) as pool:
            listed = [one for several in pool.map(list_file, paths) for one in several]
        for one in listed:
            classes = classes or one.classes
            if one.classes not in ((), classes):
                raise DataError(f"{one.path} has other classes than the files before it: {list_some(one.classes)}")
            _check_labels(one, num_classes or len(classes))
        samples[split] = _join(listed, num_kept)
    return Original(name_classes(folder, samples, classes, num_classes, num_kept), str(folder), samples, notes)


def _check_labels(listed: Listed, num_classes: int) -> None:
    wrong = np.flatnonzero((listed.labels < 0) | (listed.labels >= (num_classes or np.inf)))
    if len(wrong):
        found, last = listed.labels[wrong[0]], num_classes - 1 if num_classes else "…"
        raise DataError(f"{listed.path}: image {wrong[0]} has label {found}, expected 0..{last}")


def _join(listed: list[Listed], num_kept: int | None) -> MemberSamples:
    labels = np.concatenate([one.labels for one in listed])
    numbers = np.repeat(np.arange(len(listed)), [len(one.labels) for one in listed])
    places = np.column_stack([numbers, np.concatenate([one.places for one in listed])])
    names = [f"{one.path.name}/{index:06d}" for one in listed for index in range(len(one.labels))]
    kept = np.flatnonzero(labels < (num_kept or np.inf))
    names = [names[index] for index in kept.tolist()]
    return MemberSamples([one.path for one in listed], names, labels[kept], places[kept], [one.codec for one in listed])
