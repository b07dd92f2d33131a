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

from imagesets.formats import Format, beton
from imagesets.formats.indexed import PLACE, IndexedImages
from imagesets.formats.sinks import Collected, Images, Output, Portion, Sink, Written, replacing
from imagesets.formats.stored import Pixels
from imagesets.manifest import Index, Manifest, Split, StoredFile, describe_file
from imagesets.originals.beton import broken_beton, list_file
from imagesets.originals.samples import ByteRange, Original
from imagesets.originals.treatment import Wanted, decodable


def open_beton(folder: Path, split: Split, index: Index, manifest: Manifest | None = None) -> IndexedImages:
    """Open ``folder/SPLIT.beton``, whose own tables say where its images lie.

    Args:
        folder, split: its place.
        index: labels and sizes that it has to have.
        manifest: unused, as of all formats.

    Raises:
        DataError: if the file is broken or not the index's.
    """
    path = folder / f"{split}.beton"
    [listed] = list_file(path)
    if not np.array_equal(listed.labels, index.labels):
        found = f"{len(listed.labels)} images" if len(listed.labels) != len(index.labels) else "other labels"
        raise broken_beton(path, f"it holds {found}, the index beside it says {len(index.labels)} images")
    places = np.insert(listed.places, 0, 0, axis=1)
    index.places |= dict(zip(PLACE, places.T, strict=False))
    return IndexedImages(index, folder, [path.name])


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


FORMAT = Format(open=open_beton, make_sink=_make_sink)
