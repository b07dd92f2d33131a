"""A prepared image set's account of itself: ``manifest.json`` and ``index.safetensors`` in ``DATA_DIR/NAME/FORMAT/``.

    source -> prepare -> files of images, then the index, then the manifest -> readers

The manifest is written last, so a folder without one is half made. Samples have one order in every format: that of
the index, which is the data set's own (folders: sorted classes, sorted files in each).
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, Self

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from imagesets.fetch.storage import write_file
from suite.base.arguments import program
from suite.base.errors import DataError
from suite.base.far.remote import is_address
from suite.base.far.remote_path import path_of
from suite.base.files import read_file, sha256_of
from suite.base.frozen import Frozen
from suite.base.reading import describe, read_model
from suite.spec.resources import StorageFormat

Split = Literal["train", "test"]
SPLITS: tuple[Split, Split] = ("train", "test")

MANIFEST = "manifest.json"
INDEX = "index.safetensors"
_MAX_FAULTS = 20
_SPLIT_WORD = re.compile(r"(?<![a-z])(train|val|test)(?:ing|id|idation)?(?![a-z])", re.IGNORECASE)


class StoredFile(Frozen):
    """The size and checksum that a file has to have."""

    num_bytes: int
    sha256: str


class Manifest(Frozen):
    """A prepared image set: what is in it, and how it was made.

    ``files`` maps paths inside the folder, the index among them. Of images that were indexed in place, ``root`` is the
    folder that their names start from, and ``containers`` are the files there that many images share, each split's in
    the order that the index's ``shard`` counts in. ``shards_url`` is where a reader of format "webdataset" gets shards
    that are not in the folder.
    """

    version: Literal[1] = 1
    dataset: str
    format: StorageFormat
    classes: tuple[str, ...]
    num_images: dict[Split, int]
    num_skipped: int = 0  # corrupt images left out
    files: dict[str, StoredFile]
    source: str
    max_side: int | None = None  # of stored images, in pixels; None = as in the source
    quality: int | None = None  # of JPEGs that were encoded again; None = the source's bytes
    root: str | None = None  # from the folder, behind a link to it
    containers: dict[Split, dict[str, StoredFile]] = Field(default_factory=dict)
    shards_url: str | None = None
    fingerprints: dict[str, str] = Field(default_factory=dict)  # of the source's listing by split, and of its files
    made_at: str  # ISO 8601, UTC
    made_by: str  # the project's version and those of the packages that wrote

    def shards(self, split: Split) -> list[str]:
        """The files of one split in format "webdataset"; the index's ``shard`` counts in this list."""
        return sorted(
            name for name in self.files if (word := split_word(name)) and (word == "train") == (split == "train")
        )

    def base(self, folder: Path) -> Path:
        """The folder that the images' names start from."""
        if self.root is not None and is_address(self.root):
            return path_of(self.root)
        return folder if self.root is None else Path(os.path.normpath(folder.resolve() / self.root))

    def all_files(self, folder: Path) -> list[tuple[Path, StoredFile]]:
        """The files that have to be there, containers among them, with what they have to be."""
        own = [(folder / name, file) for name, file in self.files.items()]
        own = [pair for pair in own if self.shards_url is None or pair[0].name == INDEX or pair[0].exists()]
        files = {name: file for of_split in self.containers.values() for name, file in of_split.items()}
        return own + [(self.base(folder) / name, file) for name, file in files.items()]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if INDEX not in self.files or set(self.num_images) != set(SPLITS):
            raise ValueError(f"expected the counts of {' and '.join(SPLITS)}, and {INDEX} among the files")
        if outside := [name for name in self.files if Path(name).name != name]:
            raise ValueError(f"a file is called {outside[0]!r}, expected one part of a path")
        return self


@dataclass
class Index:
    """One split's samples, in order. ``places`` are numbers by which a format finds a sample, such as shard, offset and
    length: (N,) each. In format "folder" they are what a file has to be: num_bytes and crc32."""

    labels: NDArray[np.int64]  # (N,)
    sizes: NDArray[np.int32]  # (N, 2) height and width of the original image, before any resize of the stored one
    names_blob: NDArray[np.uint8]  # of files, UTF-8, one a line: a million Python strings would take long to load
    places: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @staticmethod
    def encode_names(names: list[str]) -> NDArray[np.uint8]:
        return np.frombuffer("\n".join(names).encode(), np.uint8)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.append(np.flatnonzero(self.names_blob == ord("\n")), len(self.names_blob))

    def name(self, index: int) -> str:
        """One of the names. A million of them at once would fill memory."""
        start = int(self._ends[index - 1]) + 1 if index else 0
        return self.names_blob[start : self._ends[index]].tobytes().decode()


def split_word(name: str, whole: bool = False) -> str | None:
    """Find the split that a file's name says: "train", "val" or "test"; None where it says none, or two of them, or if
    it is not the ``whole`` name."""
    words = {word.lower() for word in _SPLIT_WORD.findall(name)}
    return words.pop() if len(words) == 1 and (not whole or _SPLIT_WORD.fullmatch(name)) else None


def prepared_folder(data_dir: Path, dataset: str, storage_format: StorageFormat) -> Path:
    return data_dir / dataset / storage_format


def partial_folder(prepared: Path) -> Path:
    """The folder that ``prepare`` works in until a set is complete; only then does it get its name."""
    return prepared.with_name(f".{prepared.name}.partial")


def write_index(folder: Path, splits: Mapping[Split, Index]) -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    for split, index in splits.items():
        fields = {"labels": index.labels, "sizes": index.sizes, "names": index.names_blob}
        places = {f"place.{name}": place for name, place in index.places.items()}
        arrays |= {f"{split}.{name}": np.ascontiguousarray(array) for name, array in (fields | places).items()}
    write_file(folder / INDEX, safetensors.numpy.save(arrays))


def read_index(folder: Path, split: Split) -> Index:
    """One split's index. DataError if it cannot be read or its arrays differ in length."""
    path = folder / INDEX
    try:
        arrays = safetensors.numpy.load(read_file(path))
        own = {name.removeprefix(f"{split}."): array for name, array in arrays.items() if name.startswith(f"{split}.")}
        places = {name.removeprefix("place."): array for name, array in own.items() if name.startswith("place.")}
        index = Index(own["labels"], own["sizes"], own["names"], places)
        _check_arrays(index)
    except (OSError, LookupError, ValueError, TypeError, AttributeError, safetensors.SafetensorError) as error:
        raise stale(f"{path} cannot be read ({error!r})") from error
    return index


def _check_arrays(index: Index) -> None:
    """Refuse what could only be misread: numbers of another type or shape, and images or places that cannot be."""
    expected = {"labels": (np.int64, 1), "sizes": (np.int32, 2), "names_blob": (np.uint8, 1)}
    arrays = {name: getattr(index, name) for name in expected} | index.places
    for name, array in arrays.items():
        dtype, num_axes = expected.get(name, (np.int64, 1))
        if (array.dtype, array.ndim) != (dtype, num_axes) or (num_axes == 2 and array.shape[1] != 2):
            raise ValueError(f"{name} is {array.dtype}{array.shape}")
        least = 1 if name == "sizes" else 0
        if array.min(initial=least) < least:
            raise ValueError(f"{name} has numbers below {least}")
    index.names_blob.tobytes().decode()
    lengths = {len(index._ends), *(len(array) for name, array in arrays.items() if name != "names_blob")}
    if len(lengths) != 1:
        raise ValueError(f"its arrays have lengths {sorted(lengths)}, expected one")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    absent = None if manifest.containers else {"containers"}  # which earlier versions do not know
    write_file(folder / MANIFEST, manifest.model_dump_json(indent=1, exclude=absent).encode())


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared set, whose files on this machine have been held against it by size; the index by its
    checksum. DataError for a missing or broken manifest, or naming the files that it does not describe."""
    manifest = load_manifest(folder)
    near = [pair for pair in manifest.all_files(folder) if isinstance(pair[0], Path)]  # and not behind an address
    check_all(partial(check_file, *pair, by_size=True) for pair in near)
    check_file(folder / INDEX, manifest.files[INDEX])
    return manifest


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared set, whose files may have changed; DataError for a missing or broken one."""
    path = folder / MANIFEST
    try:
        return read_model(Manifest, read_file(path))
    except FileNotFoundError as error:
        if folder.is_symlink() and not folder.exists():
            link = f"{folder} is a link to {folder.readlink()}, which is not there"
            raise DataError(f"{link}. If that was moved, prepare the set again from where it is now.") from error
        half_made = "is half made" if folder.is_dir() or partial_folder(folder).is_dir() else "is not there"
        prepare = program("prepare", "python datasets/prepare.py")
        raise DataError(
            f"{folder} {half_made}: it has no {MANIFEST}. Make it with `{prepare} --dataset "
            f"{folder.parent.name} --format {folder.name} --source DIR --out {folder.parent.parent}`; "
            "the same command goes on where a killed one ended."
        ) from error
    except (OSError, ValueError) as error:
        raise stale(f"{path} cannot be read ({describe(error)})") from error


def check_all(checks: Iterable[Callable[[], object]], told: str = "") -> int:
    """Run all checks and count them. If some fail, one DataError names the first of these, a line each, and how many of
    all are not as is ``told``."""
    faults, number = list[str](), 0
    for check in checks:
        number += 1
        try:
            check()
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults[:_MAX_FAULTS] + [f"{len(faults):,} of {number:,} {told}"] * bool(told)))
    return number


def check_file(path: Path, expected: StoredFile, by_size: bool = False) -> None:
    """Raise DataError if a file is not there, has another size than the manifest says or, unless ``by_size``, another
    checksum."""
    try:
        num_bytes = path.stat().st_size
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing, though the manifest beside it lists it. Prepare it again.") from error
    found, wanted = f"{num_bytes:,} bytes", f"{expected.num_bytes:,}: it was cut short or changed"
    if num_bytes == expected.num_bytes:
        if by_size or (sha256 := sha256_of(path)) == expected.sha256:
            return
        found, wanted = f"SHA-256 {sha256}", f"{expected.sha256}: it changed after it was made"
    raise DataError(
        f"{path} has {found}, its manifest says {wanted}. Prepare it again, which says what to delete first."
    )


def stale(found: str) -> DataError:
    """The error for a prepared set that only preparing it again puts right."""
    return DataError(f"{found}. Prepare the image set again.")


def describe_file(path: Path) -> StoredFile:
    """A file's size and checksum, as a manifest lists them."""
    return StoredFile(num_bytes=path.stat().st_size, sha256=sha256_of(path))
