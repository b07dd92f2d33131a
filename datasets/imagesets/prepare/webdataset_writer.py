"""The WebDataset format: ``train-000000.tar`` and so on, of ``INDEX.jpg`` (or ``.png``) and ``INDEX.cls``.

Written by webdataset's own writer, with nothing in them of when and by whom. The index says where in a shard each
image's bytes are.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, ClassVar

from imagesets.manifest import Split, StoredFile, describe_file
from imagesets.prepare.collected import Collected
from imagesets.prepare.images import Result
from imagesets.prepare.portions import Finished, Portion
from imagesets.prepare.samples import MemberSamples
from imagesets.prepare.sinks import Images, Sink, Written, has_file, replacing
from imagesets.prepare.tars import list_members

_PLACE = ("shard", "offset", "length")


class Shards(Sink):
    """A shard for each portion."""

    result: ClassVar[Result] = "encoded"

    def write(self, portion: Portion, images: Images) -> Written:
        path = self._path(portion)
        with replacing(path) as file:
            _write_tar(file, images, self.original.samples[portion.split].labels.tolist())
        members = [member for member in list_members(path) if not member.name.endswith(".cls")]
        places = [(portion.number, member.offset, member.length) for member in members]
        return Written(_by_name(places), file=describe_file(path))

    def has(self, portion: Portion, finished: Finished) -> bool:
        return has_file(self._path(portion), finished)

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        finished = [pair for collected in splits.values() for pair in collected.portions]
        return {self._path(portion).name: done.file for portion, done in finished if done.file is not None}

    def _path(self, portion: Portion) -> Path:
        return self.ready / f"{portion.stem}.tar"


class ShardsInPlace(Shards):
    """Shards made elsewhere, which stay where they are and are only noted; each is a portion."""

    result = "unchanged"

    def write(self, portion: Portion, images: Images) -> Written:
        samples = self.original.samples[portion.split]
        assert isinstance(samples, MemberSamples)
        places = [samples.places[index].tolist() for index, _ in images]
        return Written(_by_name(places), file=describe_file(self._path(portion)))

    def _path(self, portion: Portion) -> Path:
        samples = self.original.samples[portion.split]
        assert isinstance(samples, MemberSamples)
        return samples.tars[portion.number]


def _write_tar(file: BinaryIO, images: Images, labels: list[int]) -> None:
    from webdataset.writer import TarWriter  # imports torch

    with TarWriter(file, user="", group="", mtime=0, encoder=False) as tar:
        for index, image in images:
            tar.write({"__key__": f"{index:09d}", image.extension: image.data, "cls": str(labels[index]).encode()})


def _by_name(places: list[tuple[int, int, int]]) -> dict[str, list[int]]:
    return {name: [place[axis] for place in places] for axis, name in enumerate(_PLACE)}
