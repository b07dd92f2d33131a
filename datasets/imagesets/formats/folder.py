"""The folder format: image files, found by an index of their names.

Files that stay where they are, or files made of images that came in another form.
"""

import zlib
from pathlib import Path

import numpy as np

from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats import Format
from imagesets.formats.sinks import Images, Output, Portion, Sink, Written
from imagesets.formats.stored import CHANGED, StoredImages
from imagesets.manifest import Index, Manifest, Split
from imagesets.originals.samples import FileSamples, Original
from suite.base.errors import DataError
from suite.base.files import read_file


class FolderImages(StoredImages):
    """Files of one split, in the folder that the manifest names or else in ``folder``."""

    def __init__(self, folder: Path, split: Split, index: Index, manifest: Manifest) -> None:
        super().__init__(index)
        self._root = Path(manifest.root) if manifest.root else folder
        self._sums = np.stack([index.places["num_bytes"], index.places["crc32"]], axis=1)

    def name(self, index: int) -> str:
        return str(self._root / super().name(index))

    def read(self, index: int) -> bytes:
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

    def __init__(self, original: Original, output: Output) -> None:
        super().__init__(original, output)
        train = original.samples["train"]
        assert isinstance(train, FileSamples)
        self.root = str(train.root)

    def write(self, portion: Portion, images: Images) -> Written:
        return Written(places={"num_bytes": [image.num_bytes for _, image in images]})


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
        return Written(places={"num_bytes": num_bytes}, names=names)


def _make_sink(original: Original, output: Output) -> Sink:
    are_files = isinstance(original.samples["train"], FileSamples)
    return (FilesInPlace if are_files and not output.changes_images else Files)(original, output)


FORMAT = Format(open=FolderImages, make_sink=_make_sink, has_apart=True)
