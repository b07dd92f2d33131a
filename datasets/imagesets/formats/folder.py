"""The folder format: image files, found by an index of their names.

Files that stay where they are, or files made of images that came in another form.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from imagesets.formats import Format
from imagesets.formats.portions import Portion
from imagesets.formats.sinks import Images, Output, Sink, Written, naming_disk_errors
from imagesets.formats.stored import CHANGED, EncodedImages
from imagesets.manifest import Index, Manifest, Split
from imagesets.originals.samples import FileSamples, Original
from suite.base.errors import DataError
from suite.base.files import read_file


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
            data = read_file(Path(self.name(index)))
        except OSError as error:
            raise DataError(
                f"{self.name(index)} cannot be read: {error.strerror}. It was there when the folder was indexed: "
                "put it back, or prepare the image set again."
            ) from error
        found = (len(data), zlib.crc32(data))
        if found != tuple(self._sums[index].tolist()):
            raise self._corrupt(index, ValueError(CHANGED))
        return data


class FilesInPlace(Sink):
    """Only noted, with what they have to be."""

    wanted = "unchanged"

    def __init__(self, ready: Path, original: Original, root: Path) -> None:
        super().__init__(ready, original)
        self.root = str(root)

    def write(self, portion: Portion, images: Images) -> Written:
        return Written({"num_bytes": [image.num_bytes for _, image in images]})


class Files(Sink):
    """``SPLIT/CLASS/INDEX.png`` or ``.jpg``: the index keeps the data set's order."""

    wanted = "encoded"

    def write(self, portion: Portion, images: Images) -> Written:
        names: list[str] = []
        num_bytes: list[int] = []
        labels = self.original.samples[portion.split].labels
        for index, image in images:
            assert isinstance(image.data, bytes)
            names.append(f"{portion.split}/{self.original.classes[labels[index]]}/{index:07d}.{image.extension}")
            path = self.ready / names[-1]
            with naming_disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(image.data)
            num_bytes.append(len(image.data))
        return Written({"num_bytes": num_bytes}, names)


def _open(folder: Path, split: Split, index: Index, manifest: Manifest) -> FolderImages:
    return FolderImages(Path(manifest.root) if manifest.root else folder, index)


def _make_sink(original: Original, output: Output) -> Sink:
    train = original.samples["train"]
    if output.changes_images or not isinstance(train, FileSamples):
        return Files(output.ready, original)
    return FilesInPlace(output.ready, original, train.root)


FORMAT = Format(open=_open, make_sink=_make_sink, has_apart=True)
