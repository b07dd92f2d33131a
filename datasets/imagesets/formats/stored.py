"""Stored images: one split of an image set in any format, whose samples can be read in any order.

This is what the loader asks of a format. A box is (top, left, height, width) in pixels of the original image: a format
that stores it smaller scales the box, so that augmentation parameters do not depend on the format.
"""

from __future__ import annotations

import contextlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from imagesets.decode import (
    Interpolation,
    decode,
    decode_centered,
    decode_window,
    read_size,
    resize_centered,
    resize_window,
)
from imagesets.manifest import Index
from suite.base.errors import DataError

Pixels = NDArray[np.uint8]  # (height, width, 3)
Encoded = bytes | NDArray[np.uint8]  # a JPEG's or PNG's bytes
CHANGED = "its bytes have changed since the image set was prepared"


class CorruptImageError(DataError):
    """An image that cannot be decoded."""


class StoredImages(ABC):
    """One split. ``sizes`` are the original images' height and width, (N, 2); stored ones may be smaller: where they
    are, no side is over ``max_side``. ``stored_side`` is theirs, where all are squares of one size. ``crc32s`` (N,) are
    of what is stored, and checked when it is first read."""

    max_side: int | None = None
    stored_side: int | None = None

    def __init__(
        self, labels: NDArray[np.int64], sizes: NDArray[np.int32], crc32s: NDArray[np.int64] | None = None
    ) -> None:
        self.labels, self.sizes, self._crc32s = labels, sizes, crc32s
        self._is_unread = np.ones(len(labels), bool)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def common_size(self) -> int | None:
        """The side of all images, where they are squares of one size, and stored in it."""
        first = int(self.sizes[0, 0])
        was_shrunk = self.max_side is not None and self.max_side < first
        return first if bool((self.sizes == first).all()) and not was_shrunk else None

    @abstractmethod
    def name(self, index: int) -> str:
        """The file that one image comes from, for messages."""

    @abstractmethod
    def whole(self, index: int) -> Pixels:
        """All pixels of one image, as stored."""

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        """All pixels of several images at once, (B, height, width, 3), where a format can do that faster and they are
        whole."""
        return None

    def _check(self, index: int, data: Encoded) -> None:
        if not self._are_whole([index], [data]):
            raise self._corrupt(index, ValueError(CHANGED))

    def _are_whole(self, indices: list[int], images: Sequence[Encoded] | Pixels) -> bool:
        """Whether images are what was stored, as far as they are read for the first time."""
        if self._crc32s is None or not self._is_unread[indices].any():
            return True
        are_whole = [zlib.crc32(image) == self._crc32s[index] for index, image in zip(indices, images, strict=True)]
        self._is_unread[indices] = ~np.array(are_whole)
        return all(are_whole)

    def _corrupt(self, index: int, error: ValueError) -> CorruptImageError:
        return CorruptImageError(
            f"{self.name(index)} (image {index}) cannot be decoded: {error}. Replace it and prepare the image set "
            "again, which says what to delete first, or go on without it: --skip-corrupt."
        )

    @abstractmethod
    def window(
        self, index: int, box: NDArray[np.int64], size: int, out: Pixels, interpolation: Interpolation = "bicubic"
    ) -> None:
        """Write a box of one image, resized by antialiased interpolation, into ``out``.

        Args:
            index: of the image.
            box: (top, left, height, width) in its pixels.
            size: S, the side of the result.
            out: (S, S, 3) uint8.
            interpolation: the filter that resizes.
        """

    @abstractmethod
    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        """Write one image for evaluation into ``out``: its shorter side resized, then the central window.

        Args:
            index: of the image.
            resize: the shorter side after resizing.
            size: S, the side of the window.
            out: (S, S, 3) uint8.
        """


class DecodedImages(StoredImages):
    """Images whose pixels are at hand."""

    def window(
        self, index: int, box: NDArray[np.int64], size: int, out: Pixels, interpolation: Interpolation = "bicubic"
    ) -> None:
        pixels = self.whole(index)
        resize_window(pixels, scale_box(box, self.sizes[index], pixels.shape[:2]), size, out, interpolation)

    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        pixels, (height, width) = self.whole(index), self.sizes[index].tolist()
        if pixels.shape[:2] == (height, width):
            resize_centered(pixels, resize, size, out)
        else:  # stored as a square: the same window, but for rounding
            side = round(min(height, width) * size / resize)
            box = np.array([(height - side) // 2, (width - side) // 2, side, side])
            self.window(index, box, size, out)


class EncodedImages(StoredImages):
    """JPEGs and PNGs."""

    def __init__(self, index: Index) -> None:
        super().__init__(index.labels, index.sizes, index.places.get("crc32"))
        self._index = index

    @abstractmethod
    def encoded(self, index: int) -> Encoded:
        """One image's bytes."""

    def name(self, index: int) -> str:
        return self._index.names[index]

    def whole(self, index: int) -> Pixels:
        with self._naming(index):
            return decode(self.encoded(index))

    def window(
        self, index: int, box: NDArray[np.int64], size: int, out: Pixels, interpolation: Interpolation = "bicubic"
    ) -> None:
        with self._naming(index):
            data = self.encoded(index)
            decode_window(data, scale_box(box, self.sizes[index], read_size(data)), size, out, interpolation)

    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        with self._naming(index):
            decode_centered(self.encoded(index), resize, size, out)

    @contextlib.contextmanager
    def _naming(self, index: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise self._corrupt(index, error) from error


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
