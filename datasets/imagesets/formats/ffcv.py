"""The FFCV format: one .beton a split, mapped into memory; JPEGs as they were, other images as pixels.

Its tables say where each sample lies. The bytes go through the decoder of all formats, so that its images equal theirs,
and are augmented as theirs are: FFCV's own augmentations cannot be reproduced. FFCV need not be installed.

A ``.beton`` cannot be continued once its writer was killed, but encoding, which is what takes long, can: what is to be
encoded again waits in the working folder until ``write_beton`` writes it all.
"""

import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from imagesets.decode import Pixels, decode
from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Images, Output, Portion, Sink, Written, flush, replacing
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from imagesets.originals import beton
from imagesets.originals.samples import PLACE, ByteRange, Original
from imagesets.originals.treatment import Wanted, decodable

PAGE_SIZE = 8 << 20  # bytes, FFCV's default: what it reads at once of a file that is larger than the memory


def open_beton(folder: Path, split: Split, index: Index, manifest: Manifest | None = None) -> StoredImages:
    """Open ``folder/SPLIT.beton``, whose own tables say where its images lie. DataError if the file is broken or not
    the index's.

    Args:
        folder, split, index: its place, and labels and sizes that it has to have.
        manifest: unused, as of all formats.
    """
    path = folder / f"{split}.beton"
    [listed] = beton.list_file(path)
    if not np.array_equal(listed.labels, index.labels):
        found = f"{len(listed.labels)} images" if len(listed.labels) != len(index.labels) else "other labels"
        raise beton.broken_beton(path, f"it holds {found}, the index beside it says {len(index.labels)} images")
    places = np.insert(listed.places, 0, 0, axis=1)
    index.places |= dict(zip(PLACE, places.T, strict=False))
    return StoredImages(index, folder, [path])


def write_beton(
    path: Path, samples: Iterable[bytes | Pixels], labels: NDArray[np.int64], page_size: int = PAGE_SIZE
) -> NDArray[np.int64]:
    """Write images and labels in the order given, and return the CRC-32 of each as it is stored: (N,).

    Equal samples make equal files. JPEGs keep their bytes where FFCV can decode them (RGB and grey). All else is stored
    as pixels. FFCV's ``DatasetWriter`` is not used: it waits for ever once one of its processes fails (a full disk, a
    broken image), orders pages by which process came first, and encodes every JPEG anew. DataError if the disk is full
    or cannot be written; ValueError if a sample cannot be decoded.

    Args:
        path: the file, written in place: give a temporary name and rename it.
        samples: a JPEG's or PNG's bytes, or (height, width, 3) uint8 pixels, for each label.
        labels: (N,) classes.
        page_size: bytes, a power of two; doubled for a sample that is larger.
    """
    metadata = np.zeros(len(labels), beton.METADATA)
    metadata["label"] = labels
    with naming_disk_errors(path), path.open("wb") as file:
        crc32s = _write_file(file, samples, metadata, page_size)
        flush(file)
    return crc32s


def _write_file(
    file: BinaryIO, samples: Iterable[bytes | Pixels], metadata: NDArray[np.void], page_size: int
) -> NDArray[np.int64]:
    """Header, metadata, pages of samples, table of places. No sample crosses a page's border. Returns the checksums."""
    table, crc32s = np.zeros(len(metadata), beton.ENTRY), np.zeros(len(metadata), np.int64)
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
    descriptors = np.zeros(len(beton.FIELDS), beton.FIELD)  # neither field takes arguments
    for descriptor, (name, type_id) in zip(descriptors, beton.FIELDS.items(), strict=True):
        descriptor["type_id"] = type_id
        descriptor["name"][: len(name)] = list(name.encode())
    header = np.array([(beton.VERSION, len(beton.FIELDS), page_size, num_samples, table_start)], beton.HEADER)
    return header.tobytes() + descriptors.tobytes()


def _encode(sample: bytes | Pixels) -> tuple[int, int, int, bytes]:
    """A sample's mode, height and width, and what is stored of it."""
    if isinstance(sample, bytes):
        try:
            with Image.open(io.BytesIO(sample)) as image:
                if image.format == "JPEG" and image.mode in ("RGB", "L"):
                    return beton.JPEG, image.height, image.width, sample
        except OSError as error:  # Pillow's, and not of the disk
            raise ValueError(f"an image that cannot be read: {error}") from error
        sample = decode(sample)
    return beton.RAW, sample.shape[0], sample.shape[1], sample.tobytes()


class Beton(Sink):
    """``train.beton`` and ``test.beton``, straight from the source's files."""

    wanted: ClassVar[Wanted] = "checked"

    def write(self, portion: Portion, images: Images) -> Written:
        for _ in images:
            pass
        return Written()

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        files = {}
        for split, collected in splits.items():
            path = self.ready / f"{split}.beton"
            crc32s = write_beton(path, self._read_all(split, collected), collected.index.labels)
            collected.index.places = {"crc32": crc32s}
            files[path.name] = describe_file(path)
        return files

    def _read_all(self, split: Split, collected: Collected) -> Iterator[bytes | Pixels]:
        for index in collected.kept.tolist():
            yield decodable(self.original.samples[split].byte_range(index).read())


class EncodedBeton(Beton):
    """The same, from images that were shrunk or encoded again: one file of them a portion, in the working folder."""

    wanted = "encoded"

    def write(self, portion: Portion, images: Images) -> Written:
        path, lengths = self.path(portion), []
        with replacing(path) as file:
            for _, image in images:
                assert isinstance(image.data, bytes)
                lengths.append(file.write(image.data))
        return Written(places={"length": lengths}, file=describe_file(path))

    def _read_all(self, split: Split, collected: Collected) -> Iterator[bytes | Pixels]:
        for portion, finished in collected.portions:
            offset = 0
            for length in finished.places["length"]:
                yield ByteRange(str(self.path(portion)), offset, length).read()
                offset += length

    def path(self, portion: Portion) -> Path:
        return self.ready.parent / f"{portion.stem}.images"


def _make_sink(original: Original, output: Output) -> Beton:
    return (EncodedBeton if output.changes_images else Beton)(original, output)


FORMAT = Format(open=open_beton, make_sink=_make_sink)
