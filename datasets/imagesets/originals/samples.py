"""The samples of an image set that is to be prepared: labels and names in order, and where each one's bytes are.

Made by ``detect`` and the modules of the forms. A ByteRange is small and picklable: workers do the reading.
"""

import functools
import gzip
import hashlib
import os
import unicodedata
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from imagesets.fetch.remote import find, is_address
from imagesets.manifest import Index, Split
from suite.base.errors import DataError
from suite.base.files import open_file
from suite.base.parquet_pages import decompress

CODECS = ("", "UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD")  # an index has their numbers
GZIP = (".tar.gz", ".tgz")
Pixels = NDArray[np.uint8]  # (height, width, 3)


class Page(NamedTuple):
    """A compressed page of a Parquet file, or fragments of one; ``codec`` is Parquet's name for its compression."""

    offset: int
    length: int
    codec: str


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The place of one image: a part of a file, or all of it. With a shape, the bytes are pixels and not encoded.

    With a page, offset and length count within the page, decompressed.
    """

    path: str
    offset: int = 0
    length: int = -1
    shape: tuple[int, int, int] | None = None
    page: Page | None = None

    def read(self, descriptor: int | None = None) -> bytes | Pixels:
        """The image's bytes, or its pixels.

        Args:
            descriptor: the file, where somebody keeps it open; None opens it.

        Raises:
            DataError: if the file cannot be read or is too short.
        """
        if self.page is None:
            data = _read_bytes(self.path, self.offset, self.length, descriptor)
        else:
            data = _read_page(self.path, self.page)[self.offset : self.offset + self.length]
        if len(data) < self.length:
            raise DataError(f"{self.path} ends after {self.offset + len(data):,} bytes, in the middle of an image")
        return data if self.shape is None else np.frombuffer(data, np.uint8).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class HeldBytes(ByteRange):
    """An image that was read already, since its file cannot be read from any place."""

    data: bytes = b""

    def read(self, descriptor: int | None = None) -> bytes:
        return self.data


def _read_bytes(path: str, offset: int, length: int, descriptor: int | None = None) -> bytes:
    if is_address(path):
        far = find(path)
        return far.read(offset, length if length >= 0 else far.size)
    try:
        if descriptor is not None:
            return os.pread(descriptor, length, offset)
        with open_file(Path(path)) as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Bring it back, or prepare the set again.") from error


@functools.lru_cache(maxsize=4)  # of a process: a page may have hundreds of images
def _read_page(path: str, page: Page) -> bytes:
    try:
        return decompress(_read_bytes(path, page.offset, page.length), page.codec)
    except ValueError as error:
        raise DataError(f"{path}: the page at byte {page.offset:,} cannot be decompressed: {error}") from error


class OriginalSamples(ABC):
    """One split. ``names`` are for messages and start with the class's folder, where there is one."""

    def __init__(self, names: list[str], labels: Sequence[int] | NDArray[np.int64]) -> None:
        self.names, self.labels = names, np.asarray(labels, np.int64)
        for name in names:  # the index keeps them as lines of UTF-8
            if "\n" in name or name.encode(errors="ignore").decode() != name:
                raise DataError(f"{name!r} has bytes that are not UTF-8, or a line break. Rename it.")

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def byte_range(self, index: int) -> ByteRange:
        """The place of one image's bytes."""

    @abstractmethod
    def files(self) -> list[str]:
        """The files that the images are in."""

    def fingerprint(self) -> str:
        """A digest of what is listed, to notice that a source changed between two runs."""
        digest = hashlib.sha256(Index.encode_names(self.names).tobytes())
        digest.update(self.labels.tobytes())
        return digest.hexdigest()


class FileSamples(OriginalSamples):
    """Files ``root / name``."""

    def __init__(self, root: Path, names: list[str], labels: Sequence[int]) -> None:
        super().__init__(names, labels)
        self.root = root

    def byte_range(self, index: int) -> ByteRange:
        return ByteRange(f"{self.root}/{self.names[index]}")

    def files(self) -> list[str]:
        return [f"{self.root}/{name}" for name in self.names]


class MemberSamples(OriginalSamples):
    """Members of ``tars`` or other files: ``places`` are (number of the file, offset, length), with four columns more
    where they matter: height and width of pixels, offset and length of the compressed page. They are kept as (N, 7).
    ``codecs`` are those of each file's pages."""

    def __init__(
        self,
        tars: list[Path],
        names: list[str],
        labels: Sequence[int] | NDArray[np.int64],
        places: Sequence[tuple[int, ...]] | NDArray[np.int64],
        codecs: Sequence[str] = (),
    ) -> None:
        super().__init__(names, labels)
        self.tars, self.codecs = tars, codecs
        self.places = np.zeros((len(names), 7), np.int64)
        if names:
            given = np.asarray(places, np.int64)
            self.places[:, : given.shape[1]] = given

    def byte_range(self, index: int) -> ByteRange:
        tar, offset, length, height, width, start, num_bytes = self.places[index].tolist()
        page = Page(start, num_bytes, self.codecs[tar]) if num_bytes else None
        return ByteRange(str(self.tars[tar]), offset, length, (height, width, 3) if height else None, page)

    def files(self) -> list[str]:
        return list(map(str, self.tars))

    def fingerprint(self) -> str:
        return hashlib.sha256(super().fingerprint().encode() + self.places.tobytes()).hexdigest()


class GzipSamples(MemberSamples):
    """Members of compressed tars, which can be read front to back alone: ``byte_range`` brings the bytes along."""

    _opened: tuple[int, gzip.GzipFile] | None = None

    def byte_range(self, index: int) -> ByteRange:
        tar, offset, length = self.places[index, :3].tolist()
        try:
            if self._opened is None or self._opened[0] != tar:
                self._opened = tar, gzip.GzipFile(fileobj=open_file(self.tars[tar]))
            self._opened[1].seek(offset)
            return HeldBytes(str(self.tars[tar]), offset, length, data=self._opened[1].read(length))
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self.tars[tar]} cannot be read: {str(error).rstrip('.')}. Bring it again.") from error


class PixelSamples(MemberSamples):
    """Rows of an array of pixels (N, height, width, 3) that starts at ``offset`` in a file."""

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, int, int], names: list[str], labels: NDArray[np.int64]
    ) -> None:
        height, width, channels = shape
        length = height * width * channels
        zeros = np.zeros(len(names), np.int64)
        places = (zeros, offset + np.arange(len(names)) * length, zeros + length, zeros + height, zeros + width)
        super().__init__([path], names, labels, np.stack(places, axis=1))


@dataclass
class Original:
    """An image set as it was found, its samples in the data set's own order, and ``notes`` for the user, a line each.

    ``classes`` are names in composed Unicode, in the order of the labels; each could be a folder's.
    """

    classes: tuple[str, ...]
    source: str
    samples: dict[Split, OriginalSamples]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.classes = tuple(map(class_name, self.classes))
        for name, times in Counter(self.classes).most_common(1):
            if times > 1:
                raise DataError(f"{self.source} has {times} classes called {name!r}. Make them one, or rename them.")


def class_name(name: str) -> str:
    """Compose the Unicode of a class's name, which may be written in several ways.

    Raises:
        DataError: if it is not one part of a path, or does not show as it is.
    """
    composed = unicodedata.normalize("NFC", name)
    shows = all(letter.isprintable() or unicodedata.category(letter) == "Zs" for letter in composed)
    if not shows or {*"/\\"} & {*composed} or composed.strip() in ("", ".", "..") or len(composed.encode()) > 255:
        raise DataError(f"a class is called {name!r:.300}: expected one part of a path, printable, at most 255 bytes")
    return composed


def sort_classes(names: Iterable[str]) -> list[str]:
    """Sort the names of classes: as numbers where all are numbers, so that 2 comes before 10."""
    names = sorted(names)
    are_numbers = all(name.isascii() and name.isdigit() for name in names)
    return sorted(names, key=int) if are_numbers else names


def list_some(names: Sequence[str], most: int = 5) -> str:
    """The first of some names in one line, with the number of the others."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")
