"""The one file that holds a ready image set: four arrays in safetensors form, opened as memory maps.

Between ``fetch`` (which writes it once) and the loaders (which map it). Its tensors are train_images and
test_images, uint8 of shape (N, size, size, 3), and train_labels and test_labels, int64 of shape (N,);
its metadata are the set's name, where it came from, and the SHA-256 of each array.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from imagesets.catalog import ImageSetInfo
from suite.base import files
from suite.base.errors import DataError
from suite.base.reading import read_json

Array = npt.NDArray[Any]

ARRAY_NAMES = ("train_images", "train_labels", "test_images", "test_labels")
_DTYPES: dict[str, npt.DTypeLike] = {"U8": np.uint8, "I64": np.int64}


def compute_sha256(arrays: Mapping[str, Array]) -> dict[str, str]:
    """The digest of each array's bytes as uint8: labels are hashed in one byte each, as they were published."""
    return {
        name: hashlib.sha256(np.ascontiguousarray(array, dtype=np.uint8).data).hexdigest()
        for name, array in arrays.items()
    }


def check_arrays(arrays: Mapping[str, Array], info: ImageSetInfo, shown: Sequence[str] = ARRAY_NAMES) -> None:
    """Hold arrays against the catalog: shapes, dtypes, the labels' range, checksums. DataError at the first
    difference, by the names that are to be ``shown``."""
    shown_as = dict(zip(ARRAY_NAMES, shown, strict=True))
    for name in ARRAY_NAMES:
        array, own = arrays[name], shown_as[name]
        num_images = info.num_train if name.startswith("train") else info.num_test
        shape = (num_images,) if name.endswith("labels") else (num_images, info.image_size, info.image_size, 3)
        dtype = np.dtype(np.int64 if name.endswith("labels") else np.uint8)
        if array.shape != shape or array.dtype != dtype:
            raise DataError(f"{own} is {array.dtype}{array.shape}, expected {dtype}{shape}")
        if name.endswith("labels") and (array.min() < 0 or array.max() >= info.num_classes):
            raise DataError(f"{own} has labels {array.min()}..{array.max()}, expected 0..{info.num_classes - 1}")
    if info.sha256 is None:
        return
    for name, found in compute_sha256(arrays).items():
        if found != info.sha256[name]:
            raise DataError(f"{shown_as[name]} has SHA-256 {found}, expected {info.sha256[name]}")


def write_arrays(path: Path, arrays: Mapping[str, Array], about: Mapping[str, str]) -> None:
    """Write the four arrays as ``write_file`` does, with their digests and what is said ``about`` them as metadata: the
    set's ``name``, and where they came from, its ``source``."""
    digests = {f"sha256.{array}": digest for array, digest in compute_sha256(arrays).items()}
    write_file(path, safetensors.numpy.save(dict(arrays), {**about, **digests}))


def _disk_error(path: Path, error: BaseException | None) -> DataError:
    return DataError(
        f"cannot write {path}: {error}. Free space, or choose another folder (--data-dir, or --out), then run the "
        "same command again."
    )


write_file = partial(files.write_atomically, make_error=_disk_error)
naming_disk_errors = partial(files.naming_disk_errors, make_error=_disk_error)
"""Both raise DataError, with the cure, if the disk is full or the folder of a set cannot be written."""


def open_arrays(path: Path) -> dict[str, Array]:
    """The four arrays as read-only memory maps; nothing is copied, and processes share the pages. DataError if the file
    is missing, truncated, or not one of ours."""
    read_metadata(path)  # refuses what is cut short or contradicts itself
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = read_json(file.read(length))
        arrays: dict[str, Array] = {}
        for name in ARRAY_NAMES:
            entry = header[name]
            start = 8 + length + entry["data_offsets"][0]
            arrays[name] = np.memmap(path, _DTYPES[entry["dtype"]], "r", start, tuple(entry["shape"]))
    except (OSError, ValueError, KeyError) as error:
        raise _foreign(path, f"its header cannot be read ({error!r})") from error
    return arrays


def read_metadata(path: Path) -> dict[str, str]:
    """The set's name, its source, and ``sha256.<array>`` for each array, as they were when it was written."""
    try:
        with safe_open(path, "numpy") as file:
            return file.metadata() or {}
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there. Fetch it with `python -m imagesets NAME`.") from error
    except (OSError, SafetensorError) as error:
        raise _foreign(path, str(error)) from error


def check_file(path: Path, info: ImageSetInfo) -> None:
    """Hold every byte of a ready file against the catalog, or else against the checksums that were written with it.
    DataError if this is not a complete file of that set."""
    metadata = read_metadata(path)
    if (name := metadata.get("name")) != info.name:
        raise _foreign(path, f"it holds {name!r}, expected {info.name!r}")
    written = {array: metadata[f"sha256.{array}"] for array in ARRAY_NAMES if f"sha256.{array}" in metadata}
    try:
        check_arrays(open_arrays(path), replace(info, sha256=info.sha256 or written or None))
    except DataError as error:
        raise _foreign(path, str(error)) from error


def _foreign(path: Path, found: str) -> DataError:
    return DataError(
        f"{path} is not a complete image set: {found}. Delete it and fetch it again with `python -m imagesets NAME`."
    )
