"""Stored images: one split of an image set in any format, whose samples can be read in any order.

This is what the loader asks of a format. A box is (top, left, height, width) in pixels of the original image: a format
that stores it smaller scales the box, so that augmentation parameters do not depend on the format.
"""

import contextlib
import os
import resource
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from imagesets.decode import Interpolation, Pixels, decode, decode_centered, decode_window, is_decoded, read_size
from imagesets.manifest import Index, stale
from imagesets.originals.samples import NUM_NEEDED, PLACE, ByteRange, find_place
from imagesets.originals.treatment import decodable
from suite.base.errors import DataError
from suite.base.far.remote import is_address


class CorruptImageError(DataError):
    """An image that cannot be decoded."""


class StoredImages:
    """One split: images in ``files`` that many share, or else each in a file of its name below ``root``.

    ``sizes`` are the original images' height and width, (N, 2); stored ones may be smaller. ``stored_side`` is theirs,
    where all are squares of one size. The index's checksums are of what is stored, and checked when it is first read.

    Args:
        index: labels, sizes, and in which file an image lies, from which byte on and how long.
        root: folder that files of single images are in.
        files: paths or addresses that the index's ``shard`` counts in; () where each image has a file of its own.
    """

    stored_side: int | None = None

    def __init__(self, index: Index, root: Path, files: Sequence[Path | str] = ()) -> None:
        self._descriptors: dict[int, int] = {}
        self._index, self.labels, self.sizes = index, index.labels, index.sizes
        self._crc32s = index.places.get("crc32")
        self._is_unread = np.ones(len(index.labels), bool)
        self._root, self._files = str(root), [str(path) for path in files]
        places = dict.fromkeys(PLACE[NUM_NEEDED:], np.zeros(len(index.labels), np.int64)) | index.places
        self._places = np.stack([places[name] for name in (PLACE if files else ["num_bytes"])], axis=1)
        if files and self._places[:, 0].max(initial=-1) >= len(files):
            raise stale(f"{root} has {len(files)} files of this split by its manifest, its index names more")
        self._opening = threading.Lock()
        _allow_files(len(files))
        self._rows = self._map_rows() if len(files) == 1 and not is_address(self._files[0]) else None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def common_size(self) -> int | None:
        """The side of all images, where they are squares of one size, and stored in it."""
        is_common = self.stored_side is not None and bool((self.sizes == self.stored_side).all())
        return self.stored_side if is_common else None

    def name(self, index: int) -> str:
        """The file that one image comes from, for messages."""
        where = f"{self._files[self._places[index, 0]]}: " if self._files else f"{self._root}/"
        return where + self._index.name(index)

    def read(self, index: int) -> bytes | Pixels:
        """Read what is stored of one image: pixels, or a JPEG's or PNG's bytes. CorruptImageError if they have changed
        since the image set was prepared."""
        if self._files:
            shard, *place = self._places[index].tolist()
            data = find_place(self._files[shard], place).read(self._open(shard))
        else:
            data = ByteRange(self.name(index)).read()
        with self._naming_corrupt(index):
            if (not self._files and len(data) != self._places[index, 0]) or not self._are_whole([index], [data]):
                raise ValueError("its bytes have changed since the image set was prepared")
            return decodable(data)

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        """All pixels of several images at once, (B, height, width, 3); None where they are not in one file as pixels of
        one size, or not whole."""
        if self._rows is None:
            return None
        rows = self._rows[self._places[indices, 1]].view(np.uint8)
        images: Pixels = rows.reshape(-1, *self._places[0, 3:5].tolist(), 3)
        return images if self._are_whole(indices.tolist(), images) else None

    def _map_rows(self) -> NDArray[np.void] | None:
        """The only file, mapped, as pixels that start at any byte; None where not all images are pixels of one size."""
        sides = self._places[:, 3:5]
        if not sides.all() or (sides != sides[:1]).any() or self._places[:, 6].any():
            return None
        data = np.asarray(np.memmap(self._files[0], np.uint8, "r"))
        row = np.dtype((np.void, int(self._places[0, 2])))
        return as_strided(data[: row.itemsize].view(row), (len(data) - row.itemsize + 1,), (1,), writeable=False)

    def _open(self, shard: int) -> int | None:
        """The descriptor of a file, which stays open; None of one behind an address."""
        path = self._files[shard]
        if (descriptor := self._descriptors.get(shard)) is not None or is_address(path):
            return descriptor
        with self._opening:
            if shard not in self._descriptors:
                try:
                    self._descriptors[shard] = os.open(path, os.O_RDONLY)
                except OSError as error:
                    raise DataError(f"{path} cannot be opened: {error.strerror}") from error
            return self._descriptors[shard]

    def __del__(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def whole(self, index: int) -> Pixels:
        """All pixels of one image, as stored."""
        with self._naming_corrupt(index):
            return decode(self.read(index))

    def window(
        self, index: int, box: NDArray[np.int64], size: int, out: Pixels, interpolation: Interpolation = "bicubic"
    ) -> None:
        """Write a box of one image, resized by antialiased interpolation, into ``out``.

        Args:
            index, box: the image, and (top, left, height, width) in pixels of the original one.
            size, out, interpolation: S, what is filled, (S, S, 3) uint8, and the filter that resizes.
        """
        with self._naming_corrupt(index):
            data = self.read(index)
            decode_window(data, scale_box(box, self.sizes[index], read_size(data)), size, out, interpolation)

    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        """Write one image for evaluation into ``out``: its shorter side resized, then the central window.

        Args:
            index, resize: the image, and its shorter side after resizing.
            size, out: S, the side of the window, and what is filled, (S, S, 3) uint8.
        """
        with self._naming_corrupt(index):
            data, (height, width) = self.read(index), self.sizes[index].tolist()
            if not is_decoded(data) or data.shape[:2] == (height, width):
                decode_centered(data, resize, size, out)
            else:  # stored as a square: the same window, but for rounding
                side = round(min(height, width) * size / resize)
                box = np.array([(height - side) // 2, (width - side) // 2, side, side])
                self.window(index, box, size, out)

    def _are_whole(self, indices: list[int], images: Sequence[bytes | Pixels] | Pixels) -> bool:
        """Whether images are what was stored, as far as they are read for the first time."""
        if self._crc32s is None or not self._is_unread[indices].any():
            return True
        are_whole = [zlib.crc32(image) == self._crc32s[index] for index, image in zip(indices, images, strict=True)]
        self._is_unread[indices] = ~np.array(are_whole)
        return all(are_whole)

    @contextlib.contextmanager
    def _naming_corrupt(self, index: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise CorruptImageError(
                f"{self.name(index)} (image {index}) cannot be decoded: {error}. Replace it and prepare the image set "
                "again, which says what to delete first, or go on without it: --skip-corrupt."
            ) from error


def scale_box(
    box: NDArray[np.int64], original: NDArray[np.int32], stored: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """A box of the original image in pixels of the stored one, at least one pixel high and wide."""
    edges = []
    for axis in range(2):
        factor = stored[axis] / int(original[axis])
        start = min(round(int(box[axis]) * factor), stored[axis] - 1)
        stop = max(round(int(box[axis] + box[axis + 2]) * factor), start + 1)
        edges.append((start, min(stop, stored[axis]) - start))
    (top, height), (left, width) = edges
    return top, left, height, width


def _allow_files(number: int) -> None:
    """Let this process keep so many more files open, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + number if hard == resource.RLIM_INFINITY else min(soft + number, hard)
    if soft not in (wanted, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
