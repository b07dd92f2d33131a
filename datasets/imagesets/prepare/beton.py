"""The FFCV format's sink: what is to be encoded again waits in the working folder until ``ffcv_writer`` takes it all.

A ``.beton`` cannot be continued once its writer was killed, but encoding, which is what takes long, can.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from imagesets.manifest import Split, StoredFile, describe_file
from imagesets.prepare.collected import Collected
from imagesets.prepare.images import Result, decodable
from imagesets.prepare.portions import Finished, Portion
from imagesets.prepare.samples import Original, Pixels, Place
from imagesets.prepare.sinks import Images, Sink, Written, has_file, replacing


class Beton(Sink):
    """``train.beton`` and ``test.beton``, straight from the source's files."""

    result: ClassVar[Result] = "checked"

    def write(self, portion: Portion, images: Images) -> Written:
        for _ in images:
            pass
        return Written()

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        from imagesets.prepare.ffcv_writer import write_beton  # imports FFCV

        files = {}
        for split, collected in splits.items():
            path = self.ready / f"{split}.beton"
            write_beton(path, self._read_all(split, collected), collected.index.labels)
            collected.index.places.clear()
            files[path.name] = describe_file(path)
        return files

    def _read_all(self, split: Split, collected: Collected) -> Iterator[bytes | Pixels]:
        for index in collected.kept.tolist():
            yield decodable(self.original.samples[split].place(index).read())


class EncodedBeton(Beton):
    """The same, from images that were shrunk or encoded again: one file of them a portion, in the working folder."""

    result = "encoded"

    def __init__(self, ready: Path, original: Original) -> None:
        super().__init__(ready, original)
        self._folder = ready.parent

    def write(self, portion: Portion, images: Images) -> Written:
        path, lengths = self._path(portion), []
        with replacing(path) as file:
            for _, image in images:
                assert isinstance(image.data, bytes)
                lengths.append(file.write(image.data))
        return Written({"length": lengths}, file=describe_file(path))

    def has(self, portion: Portion, finished: Finished) -> bool:
        return has_file(self._path(portion), finished)

    def _read_all(self, split: Split, collected: Collected) -> Iterator[bytes | Pixels]:
        for portion, finished in collected.portions:
            offset = 0
            for length in finished.places["length"]:
                yield Place(str(self._path(portion)), offset, length).read()
                offset += length

    def _path(self, portion: Portion) -> Path:
        return self._folder / f"{portion.stem}.images"
