"""Files that are tables of offsets (Parquet, MDS, .beton) -> the labels and places of the images of each split."""

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
ALL_WORDS = {word for words in WORDS.values() for word in words}
IMAGES, LABELS = ("image", "img", "x"), ("label", "fine_label", "y")  # names of columns
_NUM_READERS = 4  # files that are listed at once
_PART = re.compile(r"-(\d+)-of-(\d+)\b")


class Listed(NamedTuple):
    """One file's images in its order, with its names of the classes, if any, and the compression of its pages.

    ``labels`` are (N,). ``places`` are (N, 6): offset, length, height and width of pixels, offset and length of the
    compressed page; the last four are 0 where there are none.
    """

    path: Path
    labels: NDArray[np.int64]
    places: NDArray[np.int64]
    classes: tuple[str, ...] = ()
    codec: str = ""


def find_files(folder: Path, endings: tuple[str, ...], has_parts: bool = True) -> Files:
    """The files of each split: those whose names, or their folders', have its word.

    Raises:
        DataError: several sets, or files of one without ``has_parts``, or one of "00003-of-00294" is missing.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        if path.name.lower().endswith(endings) and "/." not in f"/{path.relative_to(folder).as_posix()}":
            words = find_words(path.name) or (find_words(path.parent.name) if path.parent != folder else set())
            for word in words if len(words) == 1 else ():
                found.setdefault(word, []).append(path)
    if len(found.keys() & set(WORDS["test"])) > 1:
        found.pop("test", None)  # as ImageNet's, which has no labels
    files: Files = {split: [path for word in words for path in found.get(word, ())] for split, words in WORDS.items()}
    for split, paths in files.items():
        num_sets = max(len({path.parent for path in paths}), sum(word in found for word in WORDS[split]))
        if num_sets > 1 or (len(paths) > 1 and not has_parts):
            shown = list_some([str(path.relative_to(folder)) for path in paths])
            raise DataError(f"{folder} has several {split} sets: {shown}. Put links to the files of one into a folder.")
        parts = {match[0]: match for path in paths if (match := _PART.search(path.name))}
        for _, width, count in {(0, len(match[1]), match[2]) for match in parts.values()}:
            if missing := [name for n in range(int(count)) if (name := f"-{n:0{width}d}-of-{count}") not in parts]:
                raise DataError(f"{paths[0].parent} lacks {split} files: {list_some(missing)}. Bring them, too.")
    return files


def find_words(name: str) -> set[str]:
    """The words for splits in a name."""
    return {*re.split(r"[^a-z]+", name.lower())} & ALL_WORDS


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
        list_file: lists one file, or those that it names.
        num_classes: number of classes that there have to be; None takes it from the files.
        num_kept: number of first classes whose samples are kept; None keeps all.
    """
    notes: list[str] = []
    classes = read_classes(folder, notes)
    samples: dict[Split, OriginalSamples] = {}
    for split, paths in files.items():
        if not paths:
            there = list_some([str(path) for found in files.values() for path in found])
            raise DataError(f"{folder} has no {split} files beside {there}: name them {' or '.join(WORDS[split])}.")
        with ThreadPoolExecutor(_NUM_READERS) as pool:
            listed = [one for several in pool.map(list_file, paths) for one in several]
        for one in listed:
            classes = classes or one.classes
            if one.classes not in ((), classes):
                raise DataError(f"{one.path} has other classes than the files before it: {list_some(one.classes)}")
            most = (num_classes or len(classes) or np.iinfo(np.int64).max) - 1
            for index in np.flatnonzero((one.labels < 0) | (one.labels > most))[:1].tolist():
                raise DataError(f"{one.path}: image {index} has label {one.labels[index]}, expected 0..{most}")
        samples[split] = _join(listed, num_kept)
    return name_classes(Original(classes, str(folder), samples, notes), num_kept or num_classes)


def _join(listed: list[Listed], num_kept: int | None) -> MemberSamples:
    labels = np.concatenate([one.labels for one in listed])
    numbers = np.repeat(np.arange(len(listed)), [len(one.labels) for one in listed])
    places = np.column_stack([numbers, np.concatenate([one.places for one in listed])])
    names = [f"{one.path.name}/{index:06d}" for one in listed for index in range(len(one.labels))]
    kept = np.flatnonzero(labels < (num_kept or np.inf))
    paths, codecs = [one.path for one in listed], [one.codec for one in listed]
    return MemberSamples(paths, [names[index] for index in kept.tolist()], labels[kept], places[kept], codecs)
