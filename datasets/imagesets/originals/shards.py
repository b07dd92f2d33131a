"""WebDataset shards made elsewhere: tars of images with their labels, by any of the usual names.

A split's shards have its name in theirs (``imagenet1k-train-0000.tar``) or lie in a folder of its name
(``train/0.tar``). A label is a member ``.cls``, a number in a member ``.json``, the member's folder, or the WordNet id
in its name.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imagesets.manifest import split_word
from imagesets.originals.containers import WORDNET_ID, Files, Listed
from imagesets.originals.folders import EXTENSIONS
from imagesets.originals.samples import GZIP, ByteRange, list_some
from imagesets.originals.tars import Member, list_members
from suite.base.errors import DataError
from suite.base.files import open_file

_IMAGES = tuple(extension.removeprefix(".") for extension in EXTENSIONS)
_PICKLES = ("pyd", "pickle", "pkl", "pth", "pt")
_LABEL_FORM = re.compile(rb"\s*([0-9]{1,9})\s*")  # int() would read "1_0" as 10
_MAX_LABEL_BYTES, _MAX_JSON_BYTES = 20, 1 << 20
_LABEL_KEY = re.compile("label|class|cls|target", re.IGNORECASE)


class LabelSource(NamedTuple):
    """Where labels are: in members ``cls`` or ``json`` (under ``key``), the member's ``folder``, or its ``name``."""

    kind: str
    key: str = ""

    @property
    def expected(self) -> str:
        is_member = self.kind in ("cls", "json")
        return f"a member with the extension .{self.kind}" if is_member else f"the class in the member's {self.kind}"


def make_lister(files: Files, label_key: str | None) -> Callable[[Path], list[Listed]]:
    """Make the function that lists a shard, with labels where the first image has its own, or in ``.json`` by key."""
    source = _find_label_source((files["train"] or files["test"])[0], label_key)
    return functools.partial(list_shard, source=source)


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
        if WORDNET_ID.search(name.rpartition("/")[2] + "."):
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


def list_shard(shard: Path, source: LabelSource) -> list[Listed]:
    """One shard's images.

    Raises:
        DataError: if it is cut short or has a member that cannot be trusted, or an image has no label.
    """
    names: list[str] = []
    labels: list[Any] = []
    places: list[tuple[int, int]] = []
    passed: list[str] = []
    with open_file(shard) as file:
        descriptor = file.fileno() if isinstance(shard, Path) else None  # None: behind an address
        for key, members in _group(shard, passed):
            image = _find_image(shard, key, members)
            labels.append(_read_label(shard, key, members, image, source, descriptor))
            names.append(image.name)
            places.append((image.offset, image.length))
    is_named = source.kind in ("folder", "name")
    table = np.array(places, np.int64).reshape(-1, 2)
    return [Listed(shard, labels if is_named else np.array(labels, np.int64), table, names, passed=passed)]


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
            passed += [member.name for member in members.values()]


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
    shard: Path, key: str, members: dict[str, Member], image: Member, source: LabelSource, descriptor: int | None
) -> int | str:
    if source.kind == "folder" and (folder := _folder_of(image)):
        return folder
    if source.kind == "name" and (ids := WORDNET_ID.findall(image.name.rpartition("/")[2])):
        return str(ids[-1])
    member = members.get(source.kind)
    if member is None:
        raise DataError(f"{shard}: sample {key!r} has no label, expected {source.expected}")
    if source.kind == "json":
        found = _read_json(shard, member, descriptor)
        if type(value := found.get(source.key)) is not int:
            told = f"expected the number of a class; --label-key chooses among {list_some(list(found))}"
            raise DataError(f"{shard}: {member.name} has {source.key} = {value!r:.80}, {told}")
        return value
    data = _read_member(shard, member, _MAX_LABEL_BYTES, descriptor)
    form = _LABEL_FORM.fullmatch(data) if len(data) <= _MAX_LABEL_BYTES else None
    if form is None:
        raise DataError(f"{shard}: {member.name} is {data!r}, expected the number of a class")
    return int(form[1])


def _read_json(shard: Path, member: Member, descriptor: int | None = None) -> dict[str, Any]:
    try:
        found = json.loads(_read_member(shard, member, _MAX_JSON_BYTES, descriptor))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{shard}: {member.name} cannot be read: {error!r:.300}") from error
    return found if isinstance(found, dict) else {}


def _read_member(shard: Path, member: Member, most: int, descriptor: int | None) -> bytes:
    data = ByteRange(str(shard), member.offset, min(member.length, most + 1)).read(descriptor)
    assert isinstance(data, bytes)
    return data
