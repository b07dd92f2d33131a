"""Stored images: one split of an image set in any format, whose samples can be read in any order.

This is what the loader asks of a format. A box is (top, left, height, width) in pixels of the original image: a format
that stores it smaller scales the box, so that augmentation parameters do not depend on the format.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from imagesets.decode import Interpolation, decode, decode_centered, decode_window, is_decoded, read_size
from imagesets.manifest import Index
from suite.base.errors import DataError

Pixels = NDArray[np.uint8]  # (height, width, 3)
CHANGED = "its bytes have changed since the image set was prepared"


class CorruptImageError(DataError):
    """An image that cannot be decoded."""


class StoredImages(ABC):
    """One split. ``sizes`` are the original images' height and width, (N, 2); stored ones may be smaller: where they
    are, no side is over ``max_side``. ``stored_side`` is theirs, where all are squares of one size. The index's
    checksums are of what is stored, and checked when it is first read."""

    max_side: int | None = None
    stored_side: int | None = None

    def __init__(self, index: Index) -> None:
        self._index, self.labels, self.sizes = index, index.labels, index.sizes
        self._crc32s = index.places.get("crc32")
        self._is_unread = np.ones(len(index.labels), bool)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def common_size(self) -> int | None:
        """The side of all images, where they are squares of one size, and stored in it."""
        first = int(self.sizes[0, 0])
        was_shrunk = self.max_side is not None and self.max_side < first
        return first if bool((self.sizes == first).all()) and not was_shrunk else None

    def name(self, index: int) -> str:
        """The file that one image comes from, for messages."""
        return self._index.name(index)

    @abstractmethod
    def read(self, index: int) -> bytes | Pixels:
        """Read what is stored of one image: pixels, or a JPEG's or PNG's bytes.

        Raises:
            CorruptImageError: if they have changed since the image set was prepared.
        """

    def whole(self, index: int) -> Pixels:
        """All pixels of one image, as stored."""
        try:
            return decode(self.read(index))
        except ValueError as error:
            raise self._corrupt(index, error) from error

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        """All pixels of several images at once, (B, height, width, 3), where a format can do that faster and they are
        whole."""
        return None

    def window(
        self, index: int, box: NDArray[np.int64], size: int, out: Pixels, interpolation: Interpolation = "bicubic"
    ) -> None:
        """Write a box of one image, resized by antialiased interpolation, into ``out``.

        Args:
            box: (top, left, height, width) in pixels of the original image.
            size: S, the side of the result.
            out: (S, S, 3) uint8.
            interpolation: the filter that resizes.
        """
        try:
            data = self.read(index)
            decode_window(data, scale_box(box, self.sizes[index], read_size(data)), size, out, interpolation)
        except ValueError as error:
            raise self._corrupt(index, error) from error

    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        """Write one image for evaluation into ``out``: its shorter side resized, then the central window.

        Args:
            resize: the shorter side after resizing.
            size: S, the side of the window.
            out: (S, S, 3) uint8.
        """
        try:
            data, (height, width) = self.read(index), self.sizes[index].tolist()
            if not is_decoded(data) or data.shape[:2] == (height, width):
                decode_centered(data, resize, size, out)
            else:  # stored as a square: the same window, but for rounding
                side = round(min(height, width) * size / resize)
                box = np.array([(height - side) // 2, (width - side) // 2, side, side])
                self.window(index, box, size, out)
        except ValueError as error:
            raise self._corrupt(index, error) from error

    def _check(self, index: int, data: bytes | Pixels) -> None:
        if not self._are_whole([index], [data]):
            raise self._corrupt(index, ValueError(CHANGED))

    def _are_whole(self, indices: list[int], images: Sequence[bytes | Pixels] | Pixels) -> bool:
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
