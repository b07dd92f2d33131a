"""A .beton's layout: samples in order -> one file, which FFCV's own ``Loader`` reads; and its tables back.

The file is laid out here, from FFCV's types. FFCV's ``DatasetWriter`` waits for ever once one of its processes fails
(a full disk, a broken image), orders pages by which process came first, and encodes every JPEG anew.
"""

import io
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from imagesets.decode import decode
from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats.sinks import flush
from imagesets.formats.stored import Pixels
from imagesets.prepared import FFCV_MISSING
from suite.base.errors import DataError

JPEG, RAW = 0, 1  # ffcv.fields.rgb_image.IMAGE_MODES, which is a dictionary of numba's and slow to read
FIELDS = ("image", "label")
PAGE_SIZE = 8 << 20  # bytes, FFCV's default: what it reads at once of a file that is larger than the memory


def write_beton(
    path: Path, samples: Iterable[bytes | Pixels], labels: NDArray[np.int64], page_size: int = PAGE_SIZE
) -> NDArray[np.int64]:
    """Write images and labels in the order given; equal samples make equal files.

    JPEGs keep their bytes where FFCV can decode them (RGB and grey). All else is stored as pixels.

    Args:
        path: the file, written in place: give a temporary name and rename it.
        samples: a JPEG's or PNG's bytes, or (height, width, 3) uint8 pixels, for each label.
        labels: (N,) classes.
        page_size: bytes, a power of two; doubled for a sample that is larger.

    Returns:
        The CRC-32 of what is stored of each sample: (N,).

    Raises:
        DataError: if FFCV is not installed, or the disk is full or cannot be written.
        ValueError: if a sample cannot be decoded.
    """
    import_ffcv()
    from ffcv.fields import IntField, RGBImageField
    from ffcv.types import get_metadata_type

    metadata = np.zeros(len(labels), get_metadata_type([RGBImageField(), IntField()]))
    images, metadata_labels = (metadata[name] for name in metadata.dtype.names)
    metadata_labels[:] = labels
    with naming_disk_errors(path), path.open("wb") as file:
        crc32s = _write_file(file, samples, images, metadata, page_size)
        flush(file)
    return crc32s


def _write_file(
    file: BinaryIO,
    samples: Iterable[bytes | Pixels],
    images: NDArray[np.void],
    metadata: NDArray[np.void],
    page_size: int,
) -> NDArray[np.int64]:
    """Header, metadata, pages of samples, table of places. No sample crosses a page's border. Returns the checksums."""
    from ffcv.types import ALLOC_TABLE_TYPE
    from ffcv.utils import align_to_page

    table, crc32s = np.zeros(len(metadata), ALLOC_TABLE_TYPE), np.zeros(len(metadata), np.int64)
    end = align_to_page(len(_encode_header(page_size, len(metadata), 0)) + metadata.nbytes, page_size)
    file.write(bytes(end))
    for number, sample in zip(range(len(metadata)), samples, strict=True):
        mode, height, width, data = _encode(sample)
        while len(data) > page_size:
            page_size *= 2  # what crossed no border of smaller pages crosses none of larger ones
        start = end if end % page_size + len(data) <= page_size else align_to_page(end, page_size)
        file.write(bytes(start - end))
        file.write(data)
        end = start + len(data)
        images[number] = (mode, width, height, start)
        table[number] = (number, start, len(data))
        crc32s[number] = zlib.crc32(data)
    file.write(table.tobytes())
    file.seek(0)
    file.write(_encode_header(page_size, len(metadata), end) + metadata.tobytes())
    return crc32s


def _encode_header(page_size: int, num_samples: int, table_start: int) -> bytes:
    from ffcv.fields import IntField, RGBImageField
    from ffcv.types import CURRENT_VERSION, TYPE_ID_HANDLER, FieldDescType, HeaderType

    type_ids = {handler: type_id for type_id, handler in TYPE_ID_HANDLER.items()}
    descriptors = np.zeros(len(FIELDS), FieldDescType)  # neither field takes arguments
    for descriptor, name, field in zip(descriptors, FIELDS, (RGBImageField, IntField), strict=True):
        descriptor["type_id"] = type_ids[field]
        descriptor["name"][: len(name)] = list(name.encode())
    header = np.zeros(1, HeaderType)
    header[0] = (CURRENT_VERSION, len(FIELDS), page_size, num_samples, table_start)
    return header.tobytes() + descriptors.tobytes()


def _encode(sample: bytes | Pixels) -> tuple[int, int, int, bytes]:
    """A sample's mode, height and width, and what is stored of it."""
    if isinstance(sample, bytes):
        try:
            with Image.open(io.BytesIO(sample)) as image:
                if image.format == "JPEG" and image.mode in ("RGB", "L"):
                    return JPEG, image.height, image.width, sample
        except OSError as error:  # Pillow's, and not of the disk
            raise ValueError(f"an image that cannot be read: {error}") from error
        sample = decode(sample)
    return RAW, sample.shape[0], sample.shape[1], sample.tobytes()


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
        raise broken_beton(path, str(error) or repr(error)) from error  # whatever Reader runs into in a foreign file
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


def broken_beton(path: Path, found: str) -> DataError:
    """The error for a file that is not what it should be."""
    return DataError(
        f"{path} is not a complete .beton of this image set: {found}. Delete its folder and prepare it again."
    )
