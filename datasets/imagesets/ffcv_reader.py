"""The FFCV format: one .beton a split, mapped into memory; JPEGs as they were, other images as pixels.

FFCV's ``Reader`` says where each sample lies. The bytes go through the decoder of all formats, so that FFCV's images
equal theirs, and are augmented as theirs are: FFCV's own augmentations cannot be reproduced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from imagesets.decode import Interpolation
from imagesets.manifest import Index, Split
from imagesets.prepared import FFCV_MISSING
from imagesets.stored import DecodedImages, EncodedImages, Pixels
from suite.errors import DataError

JPEG, RAW = 0, 1  # ffcv.fields.rgb_image.IMAGE_MODES, which is a dictionary of numba's and slow to read
FIELDS = ("image", "label")


class FfcvImages(EncodedImages, DecodedImages):
    """Samples of ``folder/SPLIT.beton``.

    Raises:
        DataError: if FFCV is not installed, or the file is broken or not the index's.
    """

    def __init__(self, folder: Path, split: Split, index: Index) -> None:
        super().__init__(index)
        self._path = folder / f"{split}.beton"
        images, labels, table = read_beton(self._path)
        if not np.array_equal(labels, index.labels):
            found = f"{len(labels)} images" if len(labels) != len(index.labels) else "other labels"
            raise _broken(self._path, f"it holds {found}, the index beside it says {len(index.labels)} images")
        self._bytes = np.asarray(np.memmap(self._path, np.uint8, "r"))
        self._starts, self._ends = table["ptr"].astype(np.int64), (table["ptr"] + table["size"]).astype(np.int64)
        self._shapes = np.stack([images["height"], images["width"]], axis=1)
        self._is_raw = images["mode"] == RAW
        self._is_regular = bool(self._is_raw.all() and (self._shapes == self._shapes[:1]).all())

    def name(self, index: int) -> str:
        return f"{self._path}: {super().name(index)}"

    def encoded(self, index: int) -> NDArray[np.uint8]:
        return self._bytes[self._starts[index] : self._ends[index]]

    def whole(self, index: int) -> Pixels:
        if self._is_raw[index]:
            return self.encoded(index).reshape(*self._shapes[index], 3)
        return super().whole(index)

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        if not self._is_regular:
            return None
        height, width = self._shapes[0].tolist()
        windows = sliding_window_view(self._bytes, height * width * 3)  # of any start: samples keep off page borders
        return windows[self._starts[indices]].reshape(-1, height, width, 3)

    def window(
        self,
        index: int,
        box: NDArray[np.int64],
        size: int,
        out: Pixels,
        interpolation: Interpolation = "bicubic",
    ) -> None:
        kind = DecodedImages if self._is_raw[index] else EncodedImages
        kind.window(self, index, box, size, out, interpolation)

    def centered(self, index: int, resize: int, size: int, out: Pixels) -> None:
        kind = DecodedImages if self._is_raw[index] else EncodedImages
        kind.centered(self, index, resize, size, out)


def read_beton(path: Path) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.void]]:
    """A .beton's tables: of images (mode, width, height), labels, and places (ptr, size); each (N,), in order.

    Raises:
        DataError: if FFCV is not installed, or the file is cut short or not one of ours.
    """
    import_ffcv()
    from ffcv.reader import Reader

    try:
        reader = Reader(str(path))
        if tuple(reader.field_names) != FIELDS:
            raise ValueError(f"its fields are {reader.field_names}, expected {list(FIELDS)}")
        images, labels = (reader.metadata[name] for name in reader.metadata.dtype.names)
        table = np.sort(reader.alloc_table, order="sample_id")
        _check_tables(images, table, reader.header, path.stat().st_size)
    except (OSError, AssertionError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise _broken(path, str(error) or repr(error)) from error  # whatever Reader runs into in a foreign file
    return images, labels, table


def _check_tables(images: NDArray[np.void], table: NDArray[np.void], header: Any, num_bytes: int) -> None:
    num_images, table_start = int(header["num_samples"]), int(header["alloc_table_ptr"])
    expected = table_start + num_images * table.itemsize
    if num_bytes != expected or len(table) != num_images:
        raise ValueError(f"it has {num_bytes:,} bytes, expected {expected:,}")
    if not np.array_equal(table["ptr"], images["data_ptr"]) or (table["ptr"] + table["size"] > table_start).any():
        raise ValueError("its tables contradict each other")
    raw = images["mode"] == RAW
    num_values = images["height"].astype(np.uint64) * images["width"] * 3
    if not np.array_equal(num_values[raw], table["size"][raw]):
        raise ValueError("its images do not have the sizes that its header says")


def import_ffcv() -> None:
    """Import ``ffcv`` and take back that it sets torch's threads to one.

    Raises:
        DataError: if it is not installed or lacks a system library; says how to install both.
    """
    num_threads = torch.get_num_threads()
    try:
        import ffcv  # noqa: F401
    except ImportError as error:
        raise DataError(f"FFCV cannot be imported: {error}. {FFCV_MISSING}") from error
    finally:
        torch.set_num_threads(num_threads)


def _broken(path: Path, found: str) -> DataError:
    return DataError(
        f"{path} is not a complete .beton of this image set: {found}. Delete its folder and prepare it again."
    )
