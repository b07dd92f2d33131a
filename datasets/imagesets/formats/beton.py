"""Writing a .beton, laid out as ``originals.beton`` says: samples in order -> one file, which FFCV's ``Loader`` reads.

FFCV's ``DatasetWriter`` is not used: it waits for ever once one of its processes fails (a full disk, a broken image),
orders pages by which process came first, and encodes every JPEG anew.
"""

import io
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from imagesets.decode import decode
from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats.sinks import flush
from imagesets.formats.stored import Pixels
from imagesets.originals.beton import FIELD, FIELDS, HEADER, JPEG, METADATA, PLACE, RAW, VERSION

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
        DataError: if the disk is full or cannot be written.
        ValueError: if a sample cannot be decoded.
    """
    metadata = np.zeros(len(labels), METADATA)
    metadata["label"] = labels
    with naming_disk_errors(path), path.open("wb") as file:
        crc32s = _write_file(file, samples, metadata, page_size)
        flush(file)
    return crc32s


def _write_file(
    file: BinaryIO, samples: Iterable[bytes | Pixels], metadata: NDArray[np.void], page_size: int
) -> NDArray[np.int64]:
    """Header, metadata, pages of samples, table of places. No sample crosses a page's border. Returns the checksums."""
    table, crc32s = np.zeros(len(metadata), PLACE), np.zeros(len(metadata), np.int64)
    end = _align(len(_encode_header(page_size, len(metadata), 0)) + metadata.nbytes, page_size)
    file.write(bytes(end))
    for number, sample in zip(range(len(metadata)), samples, strict=True):
        mode, height, width, data = _encode(sample)
        while len(data) > page_size:
            page_size *= 2  # what crossed no border of smaller pages crosses none of larger ones
        start = end if end % page_size + len(data) <= page_size else _align(end, page_size)
        file.write(bytes(start - end))
        file.write(data)
        end = start + len(data)
        metadata["image"][number] = (mode, width, height, start)
        table[number] = (number, start, len(data))
        crc32s[number] = zlib.crc32(data)
    file.write(table.tobytes())
    file.seek(0)
    file.write(_encode_header(page_size, len(metadata), end) + metadata.tobytes())
    return crc32s


def _align(offset: int, page_size: int) -> int:
    """The border of a page at or behind an offset."""
    return -(-offset // page_size) * page_size


def _encode_header(page_size: int, num_samples: int, table_start: int) -> bytes:
    descriptors = np.zeros(len(FIELDS), FIELD)  # neither field takes arguments
    for descriptor, (name, type_id) in zip(descriptors, FIELDS.items(), strict=True):
        descriptor["type_id"] = type_id
        descriptor["name"][: len(name)] = list(name.encode())
    header = np.array([(VERSION, len(FIELDS), page_size, num_samples, table_start)], HEADER)
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
