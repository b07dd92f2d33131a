"""The FFCV format: one .beton a split, mapped into memory; JPEGs as they were, other images as pixels.

Its tables say where each sample lies. The bytes go through the decoder of all formats, so that its images equal theirs,
and are augmented as theirs are: FFCV's own augmentations cannot be reproduced. FFCV need not be installed.
"""

import io
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from imagesets.decode import Pixels, decode
from imagesets.formats import Format
from imagesets.formats.sinks import Collected, Finished, Images, Output, Portion, Sink, open_to_grow
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from imagesets.originals import beton
from imagesets.originals.samples import PLACE, Original

PAGE_SIZE = 8 << 20  # bytes, FFCV's default: what it reads at once of a file that is larger than the memory


def open_beton(folder: Path, split: Split, index: Index, *_: Manifest) -> StoredImages:
    """Open ``folder/SPLIT.beton``, whose own tables say where its images lie. DataError if the file is broken or not
    the index's."""
    path = folder / f"{split}.beton"
    [listed] = beton.list_file(path)
    if not np.array_equal(listed.labels, index.labels):
        found = f"{len(listed.labels)} images" if len(listed.labels) != len(index.labels) else "other labels"
        raise beton.broken_beton(path, f"it holds {found}, the index beside it says {len(index.labels)} images")
    places = np.insert(listed.places, 0, 0, axis=1)
    index.places |= dict(zip(PLACE, places.T, strict=False))
    return StoredImages(index, folder, [path])


class BetonFile:
    """A .beton that grows by some images at a time behind room for its head; its table of places comes last.

    Equal images make equal files, in however many steps. JPEGs keep their bytes where FFCV can decode them (RGB and
    grey), all else is stored as pixels; none crosses the border of a page. FFCV's ``DatasetWriter`` is not used: it
    waits for ever once one of its processes fails (a full disk, a broken image), orders pages by which process came
    first, and encodes every JPEG anew.

    Args:
        path: the file, written in place: give a temporary name and rename it.
        most: number of images that there may be.
        page_size: bytes, a power of two; doubled for an image that is larger.
    """

    def __init__(self, path: Path, most: int, page_size: int = PAGE_SIZE) -> None:
        self.path, self._page_size = path, page_size
        self._head_bytes = len(_encode_header(page_size, most, 0))
        self.num_images, self.end = 0, _align(self._head_bytes + most * beton.METADATA.itemsize, page_size)

    def append(self, samples: Iterable[tuple[int, bytes | Pixels]]) -> dict[str, list[int]]:
        """Write images, each a label and a JPEG's or PNG's bytes or its pixels (height, width, 3) uint8, and return
        their lengths as they are stored, CRC-32s and ends. DataError if the disk is full or cannot be written;
        ValueError if one cannot be decoded."""
        images, labels, places = list[tuple[int, ...]](), list[int](), dict[str, list[int]](length=[], crc32=[], end=[])
        with open_to_grow(self.path) as file:
            for label, sample in samples:
                mode, height, width, data = _encode(sample)
                self._enlarge_pages(len(data))
                is_within = self.end % self._page_size + len(data) <= self._page_size
                start = self.end if is_within else _align(self.end, self._page_size)
                file.seek(start)
                file.write(data)
                self.end = start + len(data)
                images.append((mode, width, height, start))
                labels.append(label)
                for numbers, number in zip(places.values(), (len(data), zlib.crc32(data), self.end), strict=True):
                    numbers.append(number)
            file.seek(self._head_bytes + self.num_images * beton.METADATA.itemsize)
            metadata = np.zeros(len(labels), beton.METADATA)
            metadata["image"], metadata["label"] = images, labels
            file.write(metadata.tobytes())
        self.num_images += len(labels)
        return places

    def _enlarge_pages(self, num_bytes: int) -> None:
        while num_bytes > self._page_size:
            self._page_size *= 2  # what crossed no border of smaller pages crosses none of larger ones

    def go_on(self, places: Mapping[str, list[int]]) -> bool:
        """Whether images that an earlier process has appended are there, behind which the next ones then go."""
        end = [self.end, *places["end"]][-1]
        is_there = self.path.exists() and self.path.stat().st_size >= end
        if is_there:
            self.num_images, self.end = self.num_images + len(places["end"]), end
            self._enlarge_pages(max(places["length"], default=0))
        return is_there

    def finish(self, lengths: NDArray[np.int64]) -> None:
        """Write the table of places and the head; ``lengths`` are all images'."""
        table = np.zeros(self.num_images, beton.ENTRY)
        with open_to_grow(self.path) as file:
            file.seek(self._head_bytes)
            metadata = np.frombuffer(file.read(self.num_images * beton.METADATA.itemsize), beton.METADATA)
            table["sample_id"], table["size"] = np.arange(self.num_images), lengths
            table["ptr"] = metadata["image"]["data_ptr"]
            file.truncate(self.end)
            file.seek(self.end)
            file.write(table.tobytes())
            file.seek(0)
            file.write(_encode_header(self._page_size, self.num_images, self.end))


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


class Betons(Sink):
    """``train.beton`` and ``test.beton``."""

    wanted = "encoded"

    def __init__(self, original: Original, output: Output) -> None:
        super().__init__(original, output)
        samples = original.samples.items()
        self._files = {split: BetonFile(self.ready / f"{split}.beton", len(found)) for split, found in samples}

    def write(self, portion: Portion, images: Images) -> Finished:
        labels = self.original.samples[portion.split].labels
        return Finished(
            places=self._files[portion.split].append(
                (labels[index], cast(bytes, image.data)) for index, image in images
            )
        )

    def has(self, portion: Portion, finished: Finished) -> bool:
        return self._files[portion.split].go_on(finished.places)

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        for split, collected in splits.items():
            places = collected.index.places
            self._files[split].finish(places["length"])
            collected.index.places = {"crc32": places["crc32"]}
        return {file.path.name: describe_file(file.path) for file in self._files.values()}


FORMAT = Format(open=open_beton, make_sink=Betons)
