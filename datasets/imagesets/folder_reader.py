"""The folder format: image files as they lie, found by an index of their names."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from imagesets.manifest import Index
from imagesets.stored import EncodedImages
from suite.errors import DataError


class FolderImages(EncodedImages):
    """Files ``root / name`` of one split."""

    def __init__(self, root: Path, index: Index) -> None:
        super().__init__(index)
        self._root = root
        self._sums = np.stack([index.places["num_bytes"], index.places["crc32"]], axis=1)

    def name(self, index: int) -> str:
        return str(self._root / super().name(index))

    def encoded(self, index: int) -> bytes:
        try:
            data = Path(self.name(index)).read_bytes()
        except OSError as error:
            raise DataError(
                f"{self.name(index)} cannot be read: {error.strerror}. It was there when the folder was indexed: "
                "put it back, or prepare the image set again."
            ) from error
        found = (len(data), zlib.crc32(data))
        if found != tuple(self._sums[index].tolist()):
            raise self._corrupt(index, ValueError("its bytes have changed since it was indexed"))
        return data
