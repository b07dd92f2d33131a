"""Image sets as tables of offsets: the files of each split -> labels and places of their images.

``shards``, ``parquet``, ``mds`` and ``beton`` list a file; what they share is here.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import braceexpand
import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import MANIFEST, SPLITS, Split, split_word
from imagesets.originals.samples import Original, OriginalSamples, list_some, sort_classes
from suite.base.errors import DataError
from suite.base.far.remote import RefusedError
from suite.base.files import read_file

Files = dict[Split, list[Path]]

IMAGES = ("image", "img", "x")  # columns
LABELS = ("label", "fine_label", "y")
WORDNET_ID = re.compile(r"(?:^|_)(n\d{8})(?=[_.])")
_LARGE_BYTES = 1 << 30  # are listed in several processes, which take seconds to start
_NUMBERED = re.compile(r"(.*?)(\d+)((?:-of-(\d+))?\.[a-z.]+)", re.IGNORECASE)
_INFOS = ("_info.json", "info.json")
_CLASS_FILE = re.compile(r"(\w+_)?(class_?names|classes)\.txt", re.IGNORECASE)


class Listed(NamedTuple):
    """One file's images in its order."""

    path: Path
    labels: NDArray[Any] | list[str]  # (N,) numbers, or the names of the classes
    places: NDArray[np.int64]  # (N, 2 to 7), columns of ``PLACE`` behind its first
    names: Sequence[str] = ()  # for messages; where there are none, images are numbered
    classes: tuple[str, ...] = ()  # the names that the file gives them, if any
    passed: Sequence[str] = ()  # names of the other members of the file


class Options(NamedTuple):
    """Which images are wanted, and how files are listed."""

    num_classes: int | None = None  # that there have to be; None takes it from the files
    num_kept: int | None = None  # the number of first classes whose samples are kept; None keeps all
    label_key: str | None = None  # in ``.json`` members; None finds it
    apply: Callable[..., Iterable[Any]] = map  # perhaps in several processes


def find_files(folder: Path, chosen: list[Path] | None, *endings: str) -> Files:
    """The files of each split, sorted by name: those whose names, or else their folders', have its word; of all, or of
    those that a pattern has ``chosen``. DataError if a number is missing, or a split has files of several sorts."""
    found: dict[str, list[Path]] = {"train": [], "val": [], "test": []}
    for path in sorted(chosen or (*folder.glob("*"), *folder.glob("*/*"))):
        if path.name.lower().endswith(endings) and "/." not in f"/{path.relative_to(folder).as_posix()}":
            above = split_word(path.parent.name, whole=True) if chosen or path.parent != folder else None
            if word := split_word(path.name) or above:
                found[word].append(path)
    files: Files = {"train": found["train"], "test": found["val"] or found["test"]}  # ImageNet's test has no labels
    for split, paths in files.items():
        _check_numbers(folder, split, paths, is_chosen=chosen is not None)
        if paths and chosen is None:
            _check_listed(folder, split, paths)
    return files


def _check_listed(folder: Path, split: Split, paths: list[Path]) -> None:
    """Raise DataError if a file is missing beside these that timm's ``_info.json`` names."""
    there = {path.relative_to(folder).as_posix() for path in paths}
    sorts = {re.sub(r"\d+", "", name) for name in there}
    depth = max(name.count("/") for name in there)
    for info in (folder / name for name in _INFOS if (folder / name).exists()):
        strings = re.findall(r'"([^"\n]+)"', read_file(info).decode(errors="replace"))
        named = [one for text in strings if text.endswith(paths[0].suffix) for one in braceexpand.braceexpand(text)]
        listed = {"/".join(name.split("/")[-1 - depth :]) for name in named}
        if absent := sorted(name for name in listed - there if re.sub(r"\d+", "", name) in sorts):
            raise _absent(folder, split, [f"{folder}/{name}" for name in absent], f"{paths[0].stem}*{paths[0].suffix}")


def _absent(folder: Path, split: str, absent: list[str], example: str) -> DataError:
    return DataError(
        f"{len(absent)} of the {split} files are missing: {list_some(absent)}. Bring them, or name those that "
        f"are to be read: --source '{folder}/PATTERN', such as '{example}'"
    )


def _check_numbers(folder: Path, split: Split, paths: list[Path], is_chosen: bool) -> None:
    families: dict[tuple[str, str], dict[int, str]] = {}
    for path in paths:
        form = _NUMBERED.fullmatch(path.name)
        family = (f"{path.parent}/{form[1]}", form[3]) if form else (str(path), "")
        families.setdefault(family, {})[int(form[2]) if form else 0] = form[2] if form else ""
    if len(families) > 1 and not is_chosen:
        sorts = list_some([f"{start}*{end}" if end else start for start, end in families])
        raise DataError(
            f"{folder} has {split} files of {len(families)} sorts: {sorts}. "
            f"Name those that are meant: --source '{folder}/PATTERN', such as 'imagenet1k-{{train,validation}}-*.tar'"
        )
    for (start, end), numbers in families.items():
        declared = re.search(r"-of-(\d+)", end)
        if len(numbers) == 1 and not declared:
            continue
        first = min(numbers) if is_chosen or min(numbers) == 1 else 0
        last = max(max(numbers), first + int(declared[1]) - 1 if declared and not is_chosen else 0)
        width = len(next(iter(numbers.values())))
        if absent := [f"{start}{number:0{width}d}{end}" for number in range(first, last + 1) if number not in numbers]:
            raise _absent(folder, split, absent, f"{Path(start).name}{{0004..0007}}{end}")


def find_column(path: Path, found: Sequence[str], expected: tuple[str, ...]) -> str:
    """The one of these columns that is there."""
    names = [name for name in found if name in expected]
    if len(names) != 1:
        raise DataError(
            f"{path} has columns {list_some(found, 20)}; expected one of {' or '.join(IMAGES)} with images, and one of "
            f"{' or '.join(LABELS)}. Rename them, or convert it to class folders."
        )
    return names[0]


def open_listed(folder: Path, files: Files, list_file: Callable[[Path], list[Listed]], options: Options) -> Original:
    """The samples of files, in the order that they have there. DataError if a split has no files, a file is broken or
    has a label out of range or other classes, or a class has no images.

    Args:
        list_file: lists one of them, or those that it names.
    """
    notes: list[str] = []
    classes, num_classes = read_classes(folder, options.num_classes, notes), options.num_classes
    is_large = sum(path.stat().st_size for paths in files.values() for path in paths) > _LARGE_BYTES
    results = iter((options.apply if is_large else map)(list_file, [*files["train"], *files["test"]]))
    found: dict[Split, list[Listed]] = {}
    for split in SPLITS:
        if not files[split]:
            there = list_some([str(path) for paths in files.values() for path in paths])
            told = "Name them train, or val or test; a pattern in --source has to name those of both splits."
            raise DataError(f"{folder} has no {split} files beside {there}. {told}")
        found[split] = [one for _ in files[split] for one in next(results)]
    every = [one for split in SPLITS for one in found[split]]
    for one in every:
        classes = classes or one.classes
        if one.classes not in ((), classes):
            raise DataError(f"{one.path} has other classes than the files before it: {list_some(one.classes)}")
    if any(isinstance(one.labels, list) for one in every):
        classes = _order_classes(folder, classes, found)
        notes.append(f"labels are taken from the images' names or folders: {list_some(classes)}")
    num_classes = num_classes or len(classes)
    samples: dict[Split, OriginalSamples] = {}
    for split in SPLITS:
        samples[split] = _join(found[split], classes, num_classes, options.num_kept)
    num_found = options.num_kept or num_classes or 1 + max(int(one.labels.max(initial=0)) for one in samples.values())
    for split, kept in samples.items():
        with_images = np.unique(kept.labels).tolist()
        if len(with_images) < num_found:  # of labels below it: one is missing, and there may be very many
            missing = next((n for n, label in enumerate(with_images) if n != label), len(with_images))
            labels = f"{with_images[0]}..{with_images[-1]}" if with_images else "none"
            told = f"Labels are {labels}; expected each of 0..{num_found - 1}. Labels count from 0: correct them."
            raise DataError(
                f"class {missing} has no images in {folder}'s {split} files: {files[split][0].name} …. {told}"
            )
    if passed := [f"{one.path.name}/{name}" for one in every for name in one.passed]:
        notes.append(f"warning: passed over {len(passed):,} members that belong to no image: {list_some(passed)}")
    names = (classes or tuple(map(str, range(num_found))))[:num_found]
    return Original(names, str(folder), samples, notes)


def _order_classes(folder: Path, named: tuple[str, ...], found: dict[Split, list[Listed]]) -> tuple[str, ...]:
    """The classes that folders or names tell, as a file of names orders them, or else sorted."""
    train, test = ({str(label) for one in found[split] for label in one.labels} for split in SPLITS)
    if named and len(named) != len(train):
        raise DataError(f"{folder} names {len(named)} classes in a file, and its train files have {len(train)}")
    if other := sorted(test - train):
        raise DataError(f"{folder} has test images of class {other[0]!r}, of which its train files have none")
    return named if set(named) == train else tuple(sort_classes(train))


def _join(listed: list[Listed], classes: tuple[str, ...], num_classes: int, num_kept: int | None) -> OriginalSamples:
    """The samples of a split's files, those of the first classes where only these are to be kept."""
    numbers = {name: number for number, name in enumerate(classes)}
    names: list[str] = []
    labels: list[NDArray[np.int64]] = []
    places: list[NDArray[np.int64]] = []
    for number, one in enumerate(listed):
        is_named = isinstance(one.labels, list)
        its_labels = np.array([numbers[str(label)] for label in one.labels] if is_named else one.labels, np.int64)
        for index in np.flatnonzero((its_labels < 0) | (its_labels >= (num_classes or np.inf)))[:1]:
            last = num_classes - 1 if num_classes else "…"
            name = one.names[index] if one.names else f"image {index}"
            told = f"expected 0..{last}, as classnames.txt or --dataset say. Correct that, or the label."
            raise DataError(f"{one.path}: {name} has label {its_labels[index]}, {told}")
        kept = np.flatnonzero(its_labels < (num_kept or np.inf))
        its_names = one.names or [f"{index:06d}" for index in range(len(its_labels))]
        names += [f"{one.path.name}/{its_names[index]}" for index in kept.tolist()]
        labels.append(its_labels[kept])
        places.append(np.insert(one.places[kept], 0, number, axis=1))
    return OriginalSamples(names, np.concatenate(labels), [one.path for one in listed], np.concatenate(places))


def read_classes(folder: Path, num_classes: int | None, notes: list[str]) -> tuple[str, ...]:
    """The names of the classes in the order of their labels: those of a prepared set of ours, or in a file of names."""
    if names := _read_manifest(folder, notes):
        return names
    files = [path for path in sorted(folder.iterdir()) if _CLASS_FILE.fullmatch(path.name)]
    if len(files) > 1:
        found = list_some([path.name for path in files])
        raise DataError(f"{folder} has {found}. Leave the one that names the classes in the order of their labels.")
    lines = read_file(files[0]).decode(errors="replace").splitlines() if files else []
    names = tuple(line.strip() for line in lines if line.strip())
    if names and num_classes not in (None, len(names)):
        raise DataError(f"{files[0]} names {len(names):,} classes, expected {num_classes:,}. Correct it, or --dataset.")
    if len({*names}) < len(names) or (num_classes and not all(WORDNET_ID.match(f"{name}.") for name in names)):
        notes.append(f"{files[0].name} names the classes in words, which are not checked")
        return ()
    return names


def _read_manifest(folder: Path, notes: list[str]) -> tuple[str, ...]:
    """The names in a manifest of ours; one of others is passed over."""
    try:
        found = json.loads(read_file(folder / MANIFEST))
    except (FileNotFoundError, RefusedError):
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder / MANIFEST} cannot be read: {error!r:.300}") from error
    names = found.get("classes") if isinstance(found, dict) else None
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return tuple(names)
    notes.append(f"warning: passed over {folder / MANIFEST}, which is none of ours; classes are called 0, 1, …")
    return ()
