"""WebDataset shards made elsewhere: ``train-*.tar`` and ``val-*.tar`` (or ``test-*``) of images and ``.cls`` files."""

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from imagesets.manifest import MANIFEST, SHARD_PREFIXES, Split
from imagesets.originals.samples import ByteRange, MemberSamples, Original, OriginalSamples, list_some
from imagesets.originals.tars import Member, list_members
from suite.base.errors import DataError
from suite.base.files import read_file

_IMAGES = ("jpg", "jpeg", "png")
_LABEL = "cls"
_PICKLES = ("pyd", "pickle", "pkl", "pth", "pt")
_LABEL_FORM = re.compile(rb"\s*([0-9]{1,9})\s*")  # int() would read "1_0" as 10
_MAX_LABEL_BYTES = 20


def find_shards(folder: Path) -> dict[Split, list[Path]]:
    """The shards of each split, sorted by name; empty lists where there are none."""
    found: dict[Split, list[Path]] = {}
    for split, prefixes in SHARD_PREFIXES.items():
        of_prefix = (sorted(folder.glob(f"{prefix}*.tar")) for prefix in prefixes)
        found[split] = next((paths for paths in of_prefix if paths), [])
    return found


def open_shards(folder: Path, num_classes: int | None, num_kept: int | None) -> Original:
    """The samples of shards, in the order that they have there.

    Args:
        num_classes: number of classes that there have to be; None takes it from the labels.
        num_kept: number of first classes whose samples are kept; None keeps all.

    Raises:
        DataError: if a split has no shards, or a shard is cut short or has a member that cannot be trusted, an image
            without a label or a label out of range, or if a class has no images.
    """
    shards = find_shards(folder)
    for split, prefixes in SHARD_PREFIXES.items():
        if not shards[split]:
            raise DataError(f"{folder} has no shards {' or '.join(f'{prefix}*.tar' for prefix in prefixes)}")
    notes: list[str] = []
    classes = read_classes(folder, notes)
    if num_classes is None and classes:
        num_classes = len(classes)
    passed: list[str] = []  # members of no sample
    samples: dict[Split, OriginalSamples] = {}
    for split, paths in shards.items():
        samples[split] = _list_split(paths, num_classes, num_kept, passed)
    if passed:
        notes.append(f"warning: passed over {len(passed):,} members that belong to no image: {list_some(passed)}")
    return name_classes(Original(classes, str(folder), samples, notes), num_kept or num_classes)


def name_classes(original: Original, num_classes: int | None) -> Original:
    """The same with that many classes, called by number where they have no names; DataError for one without images."""
    samples, names = original.samples, original.classes
    num_found = num_classes or len(names) or max(int(listed.labels.max(initial=-1)) for listed in samples.values()) + 1
    for split, listed in samples.items():
        with_images = np.unique(listed.labels).tolist()
        if len(with_images) < num_found:  # of labels below it: one is missing, and there may be very many
            missing = next((label for label, found in enumerate(with_images) if label != found), len(with_images))
            raise DataError(f"class {missing} has no images in {original.source}'s {split} shards")
    names = names or tuple(str(label) for label in range(num_found))
    return dataclasses.replace(original, classes=names[:num_found])


def read_classes(folder: Path, notes: list[str]) -> tuple[str, ...]:
    """The names of the classes, where the shards are a prepared set of ours; a manifest of others is passed over."""
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


def _list_split(shards: list[Path], num_classes: int | None, num_kept: int | None, passed: list[str]) -> MemberSamples:
    names, labels, places = [], [], []
    for number, shard in enumerate(shards):
        for key, members in _group(shard, passed):
            label, image = _read_label(shard, key, members, num_classes), _find_image(shard, key, members)
            if num_kept is None or label < num_kept:
                names.append(f"{shard.name}/{image.name}")
                labels.append(label)
                places.append((number, image.offset, image.length))
    return MemberSamples(shards, names, labels, places)


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
        if members.keys() & {_LABEL, *_IMAGES}:
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


def _read_label(shard: Path, key: str, members: dict[str, Member], num_classes: int | None) -> int:
    member = members.get(_LABEL)
    if member is None:
        raise DataError(f"{shard}: sample {key!r} has no label, expected a member with the extension .{_LABEL}")
    data = ByteRange(str(shard), member.offset, min(member.length, _MAX_LABEL_BYTES + 1)).read()
    assert isinstance(data, bytes)
    form = _LABEL_FORM.fullmatch(data) if len(data) <= _MAX_LABEL_BYTES else None
    if form is None:
        raise DataError(f"{shard}: {member.name} is {data!r}, expected the number of a class")
    label = int(form[1])
    if num_classes is not None and label >= num_classes:
        raise DataError(f"{shard}: {member.name} has label {label}, expected 0..{num_classes - 1}")
    return label
