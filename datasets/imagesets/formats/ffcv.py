"""The FFCV format: one .beton a split, mapped into memory; JPEGs as they were, other images as pixels.

Its tables say where each sample lies. The bytes go through the decoder of all formats, so that its images equal theirs,
and are augmented as theirs are: FFCV's own augmentations cannot be reproduced. FFCV need not be installed.

A ``.beton`` cannot be continued once its writer was killed, but encoding, which is what takes long, can: what is to be
encoded again waits in the working folder until ``beton`` writes it all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from imagesets.formats import Format, beton
from imagesets.formats.sinks import Collected, Images, Output, Portion, Sink, Written, replacing
from imagesets.formats.stored import Pixels, StoredImages
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from imagesets.originals.beton import RAW, broken_beton, read_beton
from imagesets.originals.samples import ByteRange, Original
from imagesets.originals.treatment import Wanted, decodable


class FfcvImages(StoredImages):
    """Samples of ``folder/SPLIT.beton``.

    Raises:
        DataError: if the file is broken or not the index's.
    """

    def __init__(self, folder: Path, split: Split, index: Index, manifest: Manifest | None = None) -> None:
        super().__init__(index)
        self._path = folder / f"{split}.beton"
        images, labels, table = read_beton(self._path)
        if not np.array_equal(labels, index.labels):
            found = f"{len(labels)} images" if len(labels) != len(index.labels) else "other labels"
            found = f"it holds {found}, the index beside it says {len(index.labels)} images"
            raise broken_beton(self._path, found)
        self._bytes = np.asarray(np.memmap(self._path, np.uint8, "r"))
        self._starts, self._ends = table["ptr"].astype(np.int64), (table["ptr"] + table["size"]).astype(np.int64)
        self._shapes = np.stack([images["height"], images["width"]], axis=1)
        self._is_raw = images["mode"] == RAW
        self._is_regular = bool(self._is_raw.all() and (self._shapes == self._shapes[:1]).all())

    def name(self, index: int) -> str:
        return f"{self._path}: {super().name(index)}"

    def read(self, index: int) -> NDArray[np.uint8]:
        data = self._bytes[self._starts[index] : self._ends[index]]
        self._check(index, data)
        return data.reshape(*self._shapes[index], 3) if self._is_raw[index] else data

    def gather(self, indices: NDArray[np.int64]) -> Pixels | None:
        if not self._is_regular:
            return None
        height, width = self._shapes[0].tolist()
        windows = sliding_window_view(self._bytes, height * width * 3)  # of any start: samples keep off page borders
        images = windows[self._starts[indices]].reshape(-1, height, width, 3)
        return images if self._are_whole(indices.tolist(), images) else None


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
            crc32s = beton.write_beton(path, self._read_all(split, collected), collected.index.labels)
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


FORMAT = Format(open=FfcvImages, make_sink=_make_sink)
