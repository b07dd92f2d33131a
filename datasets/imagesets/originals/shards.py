"""WebDataset shards made elsewhere: tars of images with their labels, by any of the usual names.

A split's shards have its name in theirs (``imagenet1k-train-0000.tar``) or lie in a folder of its name
(``train/0.tar``). A label is a member ``.cls``, a number in a member ``.json``, the member's folder, or the WordNet id
in its name.
"""

import contextlib
import gzip
import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from imagesets.manifest import split_word
from imagesets.originals.containers import WORDNET_ID, Files, Listed
from imagesets.originals.folders import EXTENSIONS
from imagesets.originals.samples import list_some
from suite.base.archives import GZIP, Member, list_tar_members
from suite.base.errors import DataError
from suite.base.files import open_file

_IMAGES = tuple(extension.removeprefix(".") for extension in EXTENSIONS)
_PICKLES = ("pyd", "pickle", "pkl", "pth", "pt")
_LABEL_FORM = re.compile(rb"\s*([0-9]{1,9})\s*")  # int() would read "1_0" as 10
_MAX_LABEL_BYTES, _MAX_JSON_BYTES = 20, 1 << 20
_LABEL_KEY = re.compile("label|class|cls|target", re.IGNORECASE)


class _Sample(NamedTuple):
    """Members of one name, by what comes after its first dot; one of them is the image."""

    name: str
    members: dict[str, Member]
    image: Member

    @property
    def folder(self) -> str:
        return self.image.name.removeprefix("./").rpartition("/")[0].rpartition("/")[2]

    @property
    def wordnet_ids(self) -> list[str]:
        return WORDNET_ID.findall(self.image.name.rpartition("/")[2])


def make_lister(files: Files, label_key: str | None) -> Callable[[Path], list[Listed]]:
    """Make the function that lists a shard, with labels where the first image has its own, or in ``.json`` by key."""
    shard = (files["train"] or files["test"])[0]
    for sample in _group(shard, []):
        if "cls" in sample.members and label_key is None:
            return partial(list_shard, kind="cls")
        if "json" in sample.members:
            return partial(list_shard, kind="json", key=label_key or _find_key(shard, sample.members["json"]))
        if sample.folder and split_word(sample.folder, whole=True) is None:
            return partial(list_shard, kind="folder")
        if sample.wordnet_ids:
            return partial(list_shard, kind="name")
        told = "a member .cls or .json, a folder for each class, or WordNet ids in the names"
        raise DataError(f"{shard}: sample {sample.name!r} has no label; expected {told}")
    raise DataError(f"{shard} has no images ({', '.join(_IMAGES)})")


def _find_key(shard: Path, member: Member) -> str:
    with _open(shard) as file:
        numbers = [key for key, value in _read_json(shard, file, member).items() if type(value) is int]
    keys = [key for key in numbers if _LABEL_KEY.search(key)]
    if len(keys) != 1:
        raise DataError(
            f"{shard}: {member.name} has {len(keys)} numbers that may be the label ({list_some(keys or numbers)}). "
            "Say which it is: --label-key KEY"
        )
    return keys[0]


def list_shard(shard: Path, kind: str, key: str = "") -> list[Listed]:
    """One shard's images, with labels in members ``cls`` or ``json`` (under ``key``), the ``folder``, or the ``name``.
    DataError if it is cut short or has a member that cannot be trusted, or an image has no label."""
    passed: list[str] = []
    with _open(shard) as file:
        pairs = [(one.image, _read_label(shard, file, one, kind, key)) for one in _group(shard, passed)]
    labels: Any = [label for _, label in pairs]
    places = np.array([(image.offset, image.length) for image, _ in pairs], np.int64).reshape(-1, 2)
    labels = labels if kind in ("folder", "name") else np.array(labels, np.int64)
    return [Listed(shard, labels, places, [image.name for image, _ in pairs], passed=passed)]


@contextlib.contextmanager
def _open(shard: Path) -> Iterator[IO[bytes]]:
    with open_file(shard) as file:
        yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if shard.name.endswith(GZIP) else file


def _group(shard: Path, passed: list[str]) -> Iterator[_Sample]:
    """Members that follow each other and differ only in what comes after the first dot. Hidden files are passed over,
    and what goes with neither image nor label, such as a README, is added to ``passed``."""
    for name, group in itertools.groupby(_list_visible(shard), _name_without_extension):
        members: dict[str, Member] = {}
        for member in group:
            extension = member.name.rpartition("/")[2].partition(".")[2].lower()
            if extension in members:
                raise DataError(f"{shard}: {member.name} is there twice")
            members[extension] = member
        images = [members[extension] for extension in _IMAGES if extension in members]
        if not images and "cls" not in members:
            passed += [member.name for member in members.values()]
        elif len(images) != 1:
            raise DataError(f"{shard}: sample {name!r} has {len(images)} images, expected one .{', .'.join(_IMAGES)}")
        else:
            yield _Sample(name, members, images[0])


def _name_without_extension(member: Member) -> str:
    folder, _, file = member.name.rpartition("/")
    return f"{folder}/{file.partition('.')[0]}".lstrip("/")


def _list_visible(shard: Path) -> Iterator[Member]:
    for member in list_tar_members(shard):
        if member.name.lower().rpartition(".")[2] in _PICKLES:
            raise DataError(f"{shard}: {member.name} is a pickle, which could run any code. Do not trust this shard.")
        if not member.name.rpartition("/")[2].startswith("."):
            yield member


def _read_label(shard: Path, file: IO[bytes], sample: _Sample, kind: str, key: str) -> int | str:
    if kind == "folder" and sample.folder:
        return sample.folder
    if kind == "name" and sample.wordnet_ids:
        return sample.wordnet_ids[-1]
    if (member := sample.members.get(kind)) is None:
        is_member = kind in ("cls", "json")
        expected = f"a member with the extension .{kind}" if is_member else f"the class in the member's {kind}"
        raise DataError(f"{shard}: sample {sample.name!r} has no label, expected {expected}")
    if kind == "json":
        found = _read_json(shard, file, member)
        if type(value := found.get(key)) is not int:
            told = f"expected the number of a class; --label-key chooses among {list_some(list(found))}"
            raise DataError(f"{shard}: {member.name} has {key} = {value!r:.80}, {told}")
        return value
    data = _read(file, member, _MAX_LABEL_BYTES)
    form = _LABEL_FORM.fullmatch(data) if len(data) <= _MAX_LABEL_BYTES else None
    if form is None:
        raise DataError(f"{shard}: {member.name} is {data!r}, expected the number of a class")
    return int(form[1])


def _read_json(shard: Path, file: IO[bytes], member: Member) -> dict[str, Any]:
    try:
        found = json.loads(_read(file, member, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{shard}: {member.name} cannot be read: {error!r:.300}") from error
    return found if isinstance(found, dict) else {}


def _read(file: IO[bytes], member: Member, most: int) -> bytes:
    file.seek(member.offset)
    return file.read(min(member.length, most + 1))
