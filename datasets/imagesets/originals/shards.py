"""WebDataset shards made elsewhere: tars of images with their labels, by any of the usual names.

A split's shards have its name in theirs (``imagenet1k-train-0000.tar``) or lie in a folder of its name
(``train/0.tar``). A label is a member ``.cls``, a number in a member ``.json``, the member's folder, or the WordNet id
in its name.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import MANIFEST, SPLITS, Split, split_word
from imagesets.originals.folders import EXTENSIONS
from imagesets.originals.samples import (
    ByteRange,
    GzipSamples,
    MemberSamples,
    Original,
    OriginalSamples,
    list_some,
    sort_classes,
)
from imagesets.originals.tars import GZIP, Member, list_members
from suite.base.errors import DataError
from suite.base.files import read_file

_IMAGES = tuple(extension.removeprefix(".") for extension in EXTENSIONS)
_PICKLES = ("pyd", "pickle", "pkl", "pth", "pt")
_LABEL_FORM = re.compile(rb"\s*([0-9]{1,9})\s*")  # int() would read "1_0" as 10
_LARGE_BYTES = 1 << 30  # which are listed in several processes, that take seconds to start
_MAX_LABEL_BYTES, _MAX_JSON_BYTES = 20, 1 << 20
_LABEL_KEY = re.compile("label|class|cls|target", re.IGNORECASE)
_WORDNET_ID = re.compile(r"(?:^|_)(n\d{8})(?=[_.])")
_NUMBERED = re.compile(r"(.*?)(\d+)((?:-of-(\d+))?\.(?:tar|tar\.gz|tgz))", re.IGNORECASE)
_CLASS_FILE = re.compile(r"(\w+_)?(class_?names|classes)\.txt", re.IGNORECASE)


class _Listed(NamedTuple):
    """Images of a shard, or of a split: ``places`` are (offset, length), or (number of the shard, offset, length)."""

    names: list[str]
    labels: list[int | str]
    places: NDArray[np.int64]
    passed: list[str]  # members of no image


class LabelSource(NamedTuple):
    """Where labels are: in members ``cls`` or ``json`` (under ``key``), the member's ``folder``, or its ``name``."""

    kind: str
    key: str = ""

    @property
    def expected(self) -> str:
        is_member = self.kind in ("cls", "json")
        return f"a member with the extension .{self.kind}" if is_member else f"the class in the member's {self.kind}"


def find_shards(folder: Path, chosen: list[Path] | None = None) -> dict[Split, list[Path]]:
    """The shards of each split, sorted by name; empty lists where there are none.

    Args:
        folder: where they are, or are in folders named as splits.
        chosen: the files that a pattern of the user's names, instead of all.

    Raises:
        DataError: if a number is missing among them, or a split has shards of several sorts.
    """
    found: dict[str, list[Path]] = {"train": [], "val": [], "test": []}
    for path in sorted(chosen or (*folder.glob("*.t*"), *folder.glob("*/*.t*"))):
        if not path.name.startswith(".") and path.name.lower().endswith((".tar", *GZIP)):
            own = split_word(path.name) if chosen or path.parent == folder else None
            if word := own or split_word(path.parent.name, whole=True):
                found[word].append(path)
    of_split: dict[Split, list[Path]] = {"train": found["train"], "test": found["val"] or found["test"]}
    for split, paths in of_split.items():
        _check_numbers(folder, split, paths, is_chosen=chosen is not None)
    return of_split


def _check_numbers(folder: Path, split: Split, paths: list[Path], is_chosen: bool) -> None:
    families: dict[tuple[str, str], dict[int, str]] = {}
    for path in paths:
        form = _NUMBERED.fullmatch(path.name)
        family = (f"{path.parent}/{form[1]}", form[3]) if form else (str(path), "")
        families.setdefault(family, {})[int(form[2]) if form else 0] = form[2] if form else ""
    if len(families) > 1 and not is_chosen:
        shown = [f"{start}*{end}" for start, end in families]
        raise DataError(
            f"{folder} has {split} shards of {len(families)} sorts: {list_some(shown)}. Name those that are meant: "
            f"--source '{folder}/PATTERN', such as 'imagenet1k-{{train,validation}}-*.tar'"
        )
    for (start, end), numbers in families.items():
        declared = re.search(r"-of-(\d+)", end)
        first = min(numbers) if is_chosen or min(numbers) == 1 else 0
        last = max(max(numbers), first + int(declared[1]) - 1 if declared and not is_chosen else 0)
        width = len(next(iter(numbers.values())))
        if absent := [f"{start}{number:0{width}d}{end}" for number in range(first, last + 1) if number not in numbers]:
            raise DataError(
                f"{len(absent)} of the {split} shards are missing: {list_some(absent)}. Bring them, or name those that "
                f"are to be read: --source '{folder}/PATTERN', such as 'train-{{0004..0007}}.tar'"
            )


def open_shards(
    folder: Path,
    shards: dict[Split, list[Path]],
    num_classes: int | None,
    num_kept: int | None,
    label_key: str | None = None,
    apply: Callable[..., Iterable[Any]] = map,
) -> Original:
    """The samples of shards, in the order that they have there.

    Args:
        folder: the folder that they are in.
        num_classes: number of classes that there have to be; None takes it from the labels.
        num_kept: number of first classes whose samples are kept; None keeps all.
        label_key: the label's key in ``.json`` members; None finds it.
        apply: as ``map``, perhaps in several processes.

    Raises:
        DataError: if a split has no shards, or a shard is cut short or has a member that cannot be trusted, an image
            without a label or a label out of range, or if a class has no images.
    """
    for split in SPLITS:
        if not shards[split]:
            raise DataError(f"{folder} has no shards named as {'train' if split == 'train' else 'val or test'}")
    notes: list[str] = []
    classes = _read_classes(folder, num_classes, notes)
    source = _find_label_source(shards["train"][0], label_key)
    has_numbers = source.kind in ("cls", "json")
    if has_numbers and num_classes is None and classes:
        num_classes = len(classes)
    list_one = functools.partial(_list_shard, source=source, num_classes=num_classes)
    is_large = sum(path.stat().st_size for paths in shards.values() for path in paths) > _LARGE_BYTES
    listed = iter((apply if is_large else map)(list_one, [*shards["train"], *shards["test"]]))
    found = {split: _join(itertools.islice(listed, len(shards[split]))) for split in SPLITS}
    if not has_numbers:
        classes = _order_classes(folder, classes, found)
        num_classes = len(classes)
        notes.append(f"labels are taken from the members' {source.kind}s: {list_some(classes)}")
    samples: dict[Split, OriginalSamples] = {}
    for split, (names, raw_labels, places, _) in found.items():
        numbers: dict[int | str, int] = {name: number for number, name in enumerate(classes)}
        labels = np.array(raw_labels if has_numbers else [numbers[label] for label in raw_labels], np.int64)
        kept = np.flatnonzero(labels < (num_kept or np.inf))
        of_kept = names if len(kept) == len(names) else [names[index] for index in kept.tolist()]
        kind = GzipSamples if shards[split][0].name.endswith(GZIP) else MemberSamples
        samples[split] = kind(shards[split], of_kept, labels[kept], places[kept])
    num_found = num_kept or num_classes or max(int(one.labels.max(initial=-1)) for one in samples.values()) + 1
    for split, kept_samples in samples.items():
        with_images = np.unique(kept_samples.labels).tolist()
        if len(with_images) < num_found:  # of labels below it: one is missing, and there may be very many
            missing = next((n for n, label in enumerate(with_images) if n != label), len(with_images))
            shown = repr(classes[missing]) if classes else missing
            raise DataError(f"class {shown} has no images in {folder}'s {split} shards: {shards[split][0].name} …")
    if passed := [name for split in SPLITS for name in found[split].passed]:
        notes.append(f"warning: passed over {len(passed):,} members that belong to no image: {list_some(passed)}")
    return Original((classes or tuple(map(str, range(num_found))))[:num_found], str(folder), samples, notes)


def _read_classes(folder: Path, num_classes: int | None, notes: list[str]) -> tuple[str, ...]:
    """The names of the classes in the order of their labels: a prepared set's of ours, or those in a file of names."""
    if manifest := _read_manifest(folder, notes):
        return manifest
    files = [path for path in sorted(folder.iterdir()) if _CLASS_FILE.fullmatch(path.name)]
    if len(files) > 1:
        raise DataError(
            f"{folder} has {list_some([path.name for path in files])}. Leave the one that names the classes"
        )
    if not files:
        return ()
    names = tuple(line.strip() for line in read_file(files[0]).decode(errors="replace").splitlines() if line.strip())
    if num_classes not in (None, len(names)):
        raise DataError(f"{files[0]} names {len(names):,} classes, expected {num_classes:,}, a line each. Correct it.")
    if (num_classes and not all(map(_WORDNET_ID.match, (f"{name}." for name in names)))) or len({*names}) < len(names):
        notes.append(f"{files[0].name} names the classes in words, which are not checked")
        return ()
    return names


def _read_manifest(folder: Path, notes: list[str]) -> tuple[str, ...]:
    """The names in a manifest of ours; one of others is passed over."""
    try:
        found = json.loads(read_file(folder / MANIFEST))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder / MANIFEST} cannot be read: {error!r:.300}") from error
    names = found.get("classes") if isinstance(found, dict) else None
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return tuple(names)
    notes.append(f"warning: passed over {folder / MANIFEST}, which is none of ours; classes are called 0, 1, …")
    return ()


def _order_classes(folder: Path, named: tuple[str, ...], found: dict[Split, _Listed]) -> tuple[str, ...]:
    """The classes that folders or names tell, as a file of names orders them, or else sorted."""
    classes = {split: set(listed.labels) for split, listed in found.items()}
    if named and set(named) != classes["train"] and len(named) != len(classes["train"]):
        raise DataError(f"{folder} names {len(named)} classes in a file, its train shards have {len(classes['train'])}")
    if other := sorted(map(str, classes["test"] - classes["train"])):
        raise DataError(f"{folder} has test images of class {other[0]!r}, which its train shards do not have")
    return named if set(named) == classes["train"] else tuple(sort_classes(map(str, classes["train"])))


def _find_label_source(shard: Path, key: str | None) -> LabelSource:
    """Where labels are, by the first image of the first shard."""
    for name, members in _group(shard, []):
        if "cls" in members and key is None:
            return LabelSource("cls")
        if "json" in members and not shard.name.endswith(GZIP):
            return LabelSource("json", key or _find_key(shard, members["json"]))
        folder = _folder_of(_find_image(shard, name, members))
        if folder and split_word(folder, whole=True) is None:
            return LabelSource("folder")
        if _WORDNET_ID.search(name.rpartition("/")[2] + "."):
            return LabelSource("name")
        told = "a member .cls or .json, a folder for each class, or WordNet ids in the names"
        raise DataError(f"{shard}: sample {name!r} has no label; expected {told}")
    raise DataError(f"{shard} has no images ({', '.join(_IMAGES)})")


def _find_key(shard: Path, member: Member) -> str:
    numbers = [key for key, value in _read_json(shard, member).items() if type(value) is int]
    keys = [key for key in numbers if _LABEL_KEY.search(key)]
    if len(keys) != 1:
        raise DataError(
            f"{shard}: {member.name} has {len(keys)} numbers that may be the label ({list_some(keys or numbers)}). "
            "Say which it is: --label-key KEY"
        )
    return keys[0]


def _list_shard(shard: Path, source: LabelSource, num_classes: int | None) -> _Listed:
    listed, places = _Listed([], [], np.zeros((0, 2), np.int64), []), []
    for key, members in _group(shard, listed.passed):
        image = _find_image(shard, key, members)
        listed.labels.append(_read_label(shard, key, members, image, source, num_classes))
        listed.names.append(f"{shard.name}/{image.name}")
        places.append((image.offset, image.length))
    return listed._replace(places=np.array(places, np.int64).reshape(-1, 2))


def _join(shards: Iterable[_Listed]) -> _Listed:
    names, labels, places, passed = _Listed([], [], np.zeros((0, 3), np.int64), [])
    all_places = [places]
    for number, listed in enumerate(shards):
        names += listed.names
        labels += listed.labels
        passed += listed.passed
        all_places.append(np.insert(listed.places, 0, number, axis=1))
    return _Listed(names, labels, np.concatenate(all_places), passed)


def _group(shard: Path, passed: list[str]) -> Iterator[tuple[str, dict[str, Member]]]:
    """Members that follow each other and differ only in what comes after the first dot: one sample.

    Hidden files are passed over, and what goes with neither image nor label, such as a README, is added to ``passed``.
    """
    for key, group in itertools.groupby(_list_visible(shard), _key):
        members: dict[str, Member] = {}
        for member in group:
            extension = member.name.rpartition("/")[2].partition(".")[2].lower()
            if extension in members:
                raise DataError(f"{shard}: {member.name} is there twice")
            members[extension] = member
        if members.keys() & {"cls", *_IMAGES}:
            yield key, members
        else:
            passed += [f"{shard.name}/{member.name}" for member in members.values()]


def _key(member: Member) -> str:
    folder, _, file = member.name.rpartition("/")
    return f"{folder}/{file.partition('.')[0]}".lstrip("/")


def _list_visible(shard: Path) -> Iterator[Member]:
    for member in list_members(shard):
        if member.name.lower().rpartition(".")[2] in _PICKLES:
            raise DataError(f"{shard}: {member.name} is a pickle, which could run any code. Do not trust this shard.")
        if not member.name.rpartition("/")[2].startswith("."):
            yield member


def _find_image(shard: Path, key: str, members: dict[str, Member]) -> Member:
    images = [members[extension] for extension in _IMAGES if extension in members]
    if len(images) != 1:
        raise DataError(f"{shard}: sample {key!r} has {len(images)} images, expected one .{', .'.join(_IMAGES)}")
    return images[0]


def _folder_of(image: Member) -> str:
    return image.name.removeprefix("./").rpartition("/")[0].rpartition("/")[2]


def _read_label(
    shard: Path, key: str, members: dict[str, Member], image: Member, source: LabelSource, num_classes: int | None
) -> int | str:
    if source.kind == "folder" and (folder := _folder_of(image)):
        return folder
    if source.kind == "name" and (found := _WORDNET_ID.findall(image.name.rpartition("/")[2])):
        return str(found[-1])
    member = members.get(source.kind)
    if member is None:
        raise DataError(f"{shard}: sample {key!r} has no label, expected {source.expected}")
    if source.kind == "json":
        value = _read_json(shard, member).get(source.key)
        if type(value) is not int:
            raise DataError(f"{shard}: {member.name} has {source.key} = {value!r:.80}, expected the number of a class")
        label = value
    else:
        data = _read_member(shard, member, _MAX_LABEL_BYTES)
        form = _LABEL_FORM.fullmatch(data) if len(data) <= _MAX_LABEL_BYTES else None
        if form is None:
            raise DataError(f"{shard}: {member.name} is {data!r}, expected the number of a class")
        label = int(form[1])
    if label < 0 or (num_classes is not None and label >= num_classes):
        raise DataError(f"{shard}: {member.name} has label {label}, expected 0..{(num_classes or 10**9) - 1}")
    return label


def _read_json(shard: Path, member: Member) -> dict[str, Any]:
    try:
        found = json.loads(_read_member(shard, member, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{shard}: {member.name} cannot be read: {error!r:.300}") from error
    return found if isinstance(found, dict) else {}


def _read_member(shard: Path, member: Member, most: int) -> bytes:
    data = ByteRange(str(shard), member.offset, min(member.length, most + 1)).read()
    assert isinstance(data, bytes)
    return data
