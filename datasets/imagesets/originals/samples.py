"""The samples of an image set that is to be prepared: labels and names in order, and where each one's bytes are.

Made by ``folders``, ``ilsvrc``, ``shards`` and ``detect``. A ByteRange is small and picklable: workers do the reading.
"""

import hashlib
import os
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import Index, Split
from suite.base.errors import DataError
from suite.base.files import open_file

Pixels = NDArray[np.uint8]  # (height, width, 3)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The place of one image: a part of a file, or all of it. With a shape, the bytes are pixels and not encoded."""

    path: str
    offset: int = 0
    length: int = -1
    shape: tuple[int, int, int] | None = None

    def read(self, descriptor: int | None = None) -> bytes | Pixels:
        """The image's bytes, or its pixels.

        Args:
            descriptor: the file, where somebody keeps it open; None opens it.

        Raises:
            DataError: if the file cannot be read or is too short.
        """
        try:
            if descriptor is None:
                with open_file(Path(self.path)) as file:
                    file.seek(self.offset)
                    data = file.read(self.length)
            else:
                data = os.pread(descriptor, self.length, self.offset)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}") from error
        if len(data) < self.length:
            raise DataError(f"{self.path} ends after {self.offset + len(data):,} bytes, in the middle of an image")
        return data if self.shape is None else np.frombuffer(data, np.uint8).reshape(self.shape)


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

    def files(self) -> list[str]:
        """The files that the images are in, each once."""
        return list(dict.fromkeys(self.byte_range(index).path for index in range(len(self))))

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


class MemberSamples(OriginalSamples):
    """Members of tars: ``places`` are (number in ``tars``, offset, length), (N, 3)."""

    def __init__(
        self, tars: list[Path], names: list[str], labels: Sequence[int], places: Sequence[tuple[int, int, int]]
    ) -> None:
        super().__init__(names, labels)
        self.tars, self.places = tars, np.asarray(places, np.int64).reshape(-1, 3)

    def byte_range(self, index: int) -> ByteRange:
        tar, offset, length = self.places[index].tolist()
        return ByteRange(str(self.tars[tar]), offset, length)

    def fingerprint(self) -> str:
        return hashlib.sha256(super().fingerprint().encode() + self.places.tobytes()).hexdigest()


class PixelSamples(OriginalSamples):
    """Rows of an array of pixels (N, height, width, 3) that starts at ``offset`` in a file."""

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, int, int], names: list[str], labels: NDArray[np.int64]
    ) -> None:
        super().__init__(names, labels)
        self._path, self._offset, self._shape = str(path), offset, shape
        self._row_bytes = shape[0] * shape[1] * shape[2]

    def byte_range(self, index: int) -> ByteRange:
        return ByteRange(self._path, self._offset + index * self._row_bytes, self._row_bytes, self._shape)


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
