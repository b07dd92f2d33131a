"""The memory format: all images of a split as one uint8 array, mapped from a file that processes share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import Index, Split
from imagesets.stored import DecodedImages, Pixels
from suite.errors import DataError


class MemoryImages(DecodedImages):
    """Args:
    pixels: (N, S, S, 3) uint8.
    labels: (N,) classes.
    sizes: (N, 2) height and width of the originals; None = as stored.
    """

    def __init__(
        self, pixels: NDArray[np.uint8], labels: NDArray[np.int64], sizes: NDArray[np.int32] | None = None
    ) -> None:
        if sizes is None:
            sizes = np.broadcast_to(np.array(pixels.shape[1:3], np.int32), (len(pixels), 2))
        super().__init__(labels, sizes)
        self._pixels = np.asarray(pixels)  # not as a memmap, whose every slice costs microseconds

    @classmethod
    def open(cls, folder: Path, split: Split, index: Index) -> MemoryImages:
        """What ``prepare`` wrote to ``folder``.

        Raises:
            DataError: if the array is not of the index's length.
        """
        path = folder / f"{split}.npy"
        try:
            pixels = np.load(path, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is no array of images: {error}. Prepare the image set again.") from error
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or len(pixels) != len(index.labels):
            raise DataError(
                f"{path} holds {pixels.dtype}{pixels.shape}, expected uint8 of {len(index.labels)} images. "
                "Prepare the image set again."
            )
        return cls(pixels, index.labels, index.sizes)

    @property
    def common_size(self) -> int | None:
        return super().common_size if self._pixels.shape[1] == self.sizes[0, 0] else None

    def whole(self, index: int) -> Pixels:
        image: Pixels = self._pixels[index]
        return image

    def gather(self, indices: NDArray[np.int64]) -> Pixels:
        images: Pixels = self._pixels[indices]
        return images
