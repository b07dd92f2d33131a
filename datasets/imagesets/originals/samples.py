"""The samples of an image set that is to be prepared: labels and names in order, and where each one's bytes are.

Made by ``detect`` and the modules of the forms. A ByteRange is small and picklable: workers do the reading.
"""

import functools
import gzip
import hashlib
import os
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from imagesets.decode import Pixels
from imagesets.manifest import Index, Split
from suite.base.archives import GZIP
from suite.base.errors import DataError
from suite.base.far.remote import find, is_address
from suite.base.files import open_file
from suite.base.parquet_pages import decompress

CODECS = ("", "UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD")  # an index has their numbers
PLACE = ("shard", "offset", "length", "height", "width", "page_offset", "page_length", "codec")
NUM_NEEDED = 3  # of these; an index leaves the others out where they are 0


class Page(NamedTuple):
    """A compressed page of a Parquet file, or fragments of one; ``codec`` is Parquet's name for its compression."""

    offset: int
    length: int
    codec: str


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The place of one image: a part of a file, or all of it."""

    path: str
    offset: int = 0
    length: int = -1
    shape: tuple[int, int, int] | None = None  # of pixels; None for an encoded image
    page: Page | None = None  # that offset and length count within, once it is decompressed
    data: bytes | None = None  # that was read already, since the file cannot be read from any place

    def read(self, descriptor: int | None = None) -> bytes | Pixels:
        """The image's bytes, or its pixels, by ``descriptor`` where somebody keeps the file open. DataError if the file
        cannot be read or is too short."""
        if self.data is not None:
            data = self.data
        elif self.page is not None:
            data = _read_page(self.path, self.page)[self.offset : self.offset + self.length]
        else:
            data = _read_bytes(self.path, self.offset, self.length, descriptor)
        if len(data) < self.length:
            raise DataError(f"{self.path} ends after {self.offset + len(data):,} bytes, in the middle of an image")
        return data if self.shape is None else np.frombuffer(data, np.uint8).reshape(self.shape)


def find_place(path: str, place: Sequence[int]) -> ByteRange:
    """The image of a line of a table, by its numbers behind the first of ``PLACE``."""
    offset, length, height, width, start, num_bytes, codec = place
    page = Page(start, num_bytes, CODECS[codec]) if num_bytes else None
    return ByteRange(path, offset, length, (height, width, 3) if height else None, page)


def place_rows(images: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """The places of an array's images (N, height, width, 3) in the file that it is mapped from."""
    assert isinstance(images, np.memmap)
    num, height, width, channels = images.shape
    length = height * width * channels
    columns = (0, images.offset + np.arange(num) * length, length, height, width)
    return dict(zip(PLACE, np.broadcast_arrays(*columns), strict=False))


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


class OriginalSamples:
    """One split, as a table.

    Args:
        names: names for messages, which start with the class's folder where there is one.
        labels: (N,) classes.
        files: files that many images share; of gzip tars, ``byte_range`` brings the bytes along.
        places: (N, 3 to 8), the first columns of ``PLACE``; the others are 0.
        root: folder below which each image is a file of its name, where there are no such files.
    """

    def __init__(
        self,
        names: list[str],
        labels: Sequence[int] | NDArray[np.int64],
        files: Sequence[Path] = (),
        places: Sequence[tuple[int, ...]] | NDArray[np.int64] = (),
        root: Path | None = None,
    ) -> None:
        self.names, self.labels = names, np.asarray(labels, np.int64)
        self.shared_files, self.root = files, root
        for name in names:  # the index keeps them as lines of UTF-8
            if "\n" in name or name.encode(errors="ignore").decode() != name:
                raise DataError(f"{name!r} has bytes that are not UTF-8, or a line break. Rename it.")
        self.places = np.zeros((len(places), len(PLACE)), np.int64)
        if len(places):
            given = np.asarray(places, np.int64)
            self.places[:, : given.shape[1]] = given
        self.is_gzip = any(path.name.endswith(GZIP) for path in files)
        self._opened: tuple[int, gzip.GzipFile] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def byte_range(self, index: int) -> ByteRange:
        """The place of one image's bytes."""
        if self.root is not None:
            return ByteRange(f"{self.root}/{self.names[index]}")
        number, *place = self.places[index].tolist()
        found = find_place(str(self.shared_files[number]), place)
        return replace(found, data=self._read_gzip(number, found)) if self.is_gzip else found

    def _read_gzip(self, number: int, place: ByteRange) -> bytes:
        """Go on in a compressed tar, which can be read from front to back alone."""
        try:
            if self._opened is None or self._opened[0] != number:
                self._opened = number, gzip.GzipFile(fileobj=open_file(self.shared_files[number]))
            self._opened[1].seek(place.offset)
            return self._opened[1].read(place.length)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{place.path} cannot be read: {str(error).rstrip('.')}. Bring it again.") from error

    def files(self) -> list[str]:
        """The files that the images are in."""
        names = self.names if self.root is not None else ()
        return [*map(str, self.shared_files), *(f"{self.root}/{name}" for name in names)]

    def fingerprint(self) -> str:
        """A digest of what is listed, to notice that a source changed between two runs."""
        digest = hashlib.sha256(Index.encode_names(self.names).tobytes() + self.labels.tobytes()).hexdigest()
        if self.root is not None:
            return digest
        return hashlib.sha256(digest.encode() + self.places[:, :-1].tobytes()).hexdigest()


@dataclass
class Original:
    """An image set as it was found, its samples in the data set's own order, and ``notes`` for the user, a line each.

    ``classes`` are names in composed Unicode, in the order of the labels; each could be a folder's. ``is_checked`` is
    true of arrays whose every byte was held against the catalog.
    """

    classes: tuple[str, ...]
    source: str
    samples: dict[Split, OriginalSamples]
    notes: list[str] = field(default_factory=list)
    is_checked: bool = False

    def __post_init__(self) -> None:
        self.classes = tuple(map(class_name, self.classes))
        for name, times in Counter(self.classes).most_common(1):
            if times > 1:
                raise DataError(f"{self.source} has {times} classes called {name!r}. Make them one, or rename them.")


def class_name(name: str) -> str:
    """Compose the Unicode of a class's name, which may be written in several ways. DataError if it is not one part of a
    path, or does not show as it is."""
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
