"""A request -> the sink that writes its format, and the portions that it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from imagesets.prepare.beton import Beton, EncodedBeton
from imagesets.prepare.folder_writer import Files, FilesInPlace
from imagesets.prepare.memory_writer import Rows
from imagesets.prepare.portions import Portion, divide
from imagesets.prepare.request import Request
from imagesets.prepare.samples import FileSamples, MemberSamples, Original
from imagesets.prepare.sinks import Sink
from imagesets.prepare.webdataset_writer import Shards, ShardsInPlace
from suite.errors import SpecError


def is_in_place(request: Request, original: Original) -> bool:
    """Whether the source is the very folder that the shards would be written to."""
    if request.stored_as != "webdataset" or Path(original.source).resolve() != request.target.resolve():
        return False
    if request.changes_images:
        raise SpecError(f"{request.target} is source and target: its images cannot be changed. Choose another --out.")
    return True


def choose_sink(request: Request, original: Original, ready: Path, in_place: bool) -> Sink:
    match request.stored_as:
        case "memory":
            return Rows(ready, original)
        case "ffcv":
            return EncodedBeton(ready, original) if request.changes_images else Beton(ready, original)
        case "webdataset":
            return ShardsInPlace(ready, original) if in_place else Shards(ready, original)
        case "folder":
            written = request.changes_images or root_of(original) is None
            return Files(ready, original) if written else FilesInPlace(ready, original)


def root_of(original: Original) -> str | None:
    """The folder of a source that is an image folder."""
    train = original.samples["train"]
    return str(train.root) if isinstance(train, FileSamples) else None


def divide_samples(request: Request, original: Original, sink: Sink) -> list[Portion]:
    portions: list[Portion] = []
    for split, samples in original.samples.items():
        lengths = [request.samples_per_shard] * (len(samples) // request.samples_per_shard)
        if remainder := len(samples) % request.samples_per_shard:
            lengths.append(remainder)
        if isinstance(sink, ShardsInPlace):
            assert isinstance(samples, MemberSamples)
            lengths = np.bincount(samples.places[:, 0], minlength=len(samples.tars)).tolist()
        portions += divide(split, lengths)
    return portions
