"""A .beton, FFCV's file of a split: its layout, and its tables read back, whoever wrote it. No FFCV is needed.

A header, a descriptor of each field, metadata of each sample, pages of samples, a table of their places.
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from imagesets.originals.containers import Listed
from suite.base.errors import DataError
from suite.base.files import open_file

VERSION = 2
JPEG, RAW = 0, 1
FIELDS = {"image": 2, "label": 1}  # by the numbers of their types
TYPES = ("FloatField", "IntField", "RGBImageField", "BytesField", "NDArrayField", "JSONField", "TorchTensorField")

HEADER = np.dtype("<u2, <u2, <u4, <u8, <u8")
HEADER.names = ("version", "num_fields", "page_size", "num_samples", "alloc_table_ptr")
FIELD = np.dtype([("type_id", "<u1"), ("name", "<u1", 16), ("arguments", "<u1", 1024)])
IMAGE = np.dtype([("mode", "<u1"), ("width", "<u2"), ("height", "<u2"), ("data_ptr", "<u8")])
METADATA = np.dtype([("image", IMAGE), ("label", "<i8")], align=True)
ENTRY = np.dtype([("sample_id", "<u8"), ("ptr", "<u8"), ("size", "<u8")])


def list_file(path: Path) -> list[Listed]:
    """One file's images, JPEGs or pixels, each in the size that it was stored in, in order. DataError if it is cut
    short, or has other fields than an image and a label."""
    try:
        with open_file(path) as file:
            [header] = _read(file, HEADER, 1)
            if header["version"] != VERSION:
                raise ValueError(f"its version is {header['version']}, expected {VERSION}")
            descriptors = _read(file, FIELD, int(header["num_fields"]))
            fields = {one["name"].tobytes().split(b"\0")[0].decode(): int(one["type_id"]) for one in descriptors}
            if list(fields.items()) != list(FIELDS.items()):
                raise ValueError(f"its fields are {_show(fields)}, expected {_show(FIELDS)}")
            metadata = _read(file, METADATA, int(header["num_samples"]))
            table_start = file.seek(int(header["alloc_table_ptr"]))
            table = np.sort(_read(file, ENTRY, len(metadata)), order="sample_id")
            if file.read(1):
                raise ValueError("it goes on behind its table of places")
        _check_tables(images := metadata["image"], table, table_start)
    except (OSError, ArithmeticError, ValueError) as error:
        raise broken_beton(path, str(error) or repr(error)) from error
    shapes = [images[name] * (images["mode"] == RAW) for name in ("height", "width")]
    places = np.stack([table["ptr"], table["size"], *shapes], 1).astype(np.int64)
    return [Listed(path, metadata["label"], places)]


def _read(file: BinaryIO, dtype: np.dtype[Any], count: int) -> NDArray[np.void]:
    start, num_bytes = file.tell(), count * dtype.itemsize
    if start + num_bytes > (end := file.seek(0, 2)):
        raise ValueError(f"it has {end:,} bytes, expected at least {start + num_bytes:,}")
    file.seek(start)
    return np.frombuffer(file.read(num_bytes), dtype)


def _show(fields: dict[str, int]) -> str:
    return ", ".join(f"{name}: {TYPES[kind] if kind < len(TYPES) else 'of its own'}" for name, kind in fields.items())


def _check_tables(images: NDArray[np.void], table: NDArray[np.void], table_start: int) -> None:
    if not np.array_equal(table["ptr"], images["data_ptr"]) or (table["ptr"] + table["size"] > table_start).any():
        raise ValueError("its tables contradict each other")
    raw = images["mode"] == RAW
    num_values = images["height"].astype(np.uint64) * images["width"] * 3
    if not np.array_equal(num_values[raw], table["size"][raw]) or (images["mode"] > RAW).any():
        raise ValueError("its images do not have the sizes that its header says")


def broken_beton(path: Path, found: str) -> DataError:
    """The error for a file that is not what it should be."""
    cure = "Bring it again; a prepared one, prepare again, and delete its folder first."
    return DataError(f"{path} is not a complete .beton of images and labels: {found}. {cure}")
