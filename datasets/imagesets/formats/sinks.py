"""Sinks: what ``prepare`` asks of a format, which takes treated images a portion at a time.

A portion is a run of samples of one split: a shard, where there are shards. ``Format.make_sink`` chooses the sink; the
journal notes what came of each portion.
"""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from imagesets.fetch.storage import naming_disk_errors
from imagesets.manifest import Index, Split, StoredFile
from imagesets.originals.samples import Original, OriginalSamples
from imagesets.originals.treatment import Treated, Wanted
from suite.base.frozen import Frozen

Images = Iterator[tuple[int, Treated]]  # with their indexes among the split's samples


@dataclass(frozen=True)
class Portion:
    """Samples ``start`` to ``stop`` of a split; ``number`` counts from 0 in each."""

    split: Split
    number: int
    start: int
    stop: int

    @property
    def stem(self) -> str:
        return f"{self.split}-{self.number:06d}"


_Pixels = Annotated[int, Field(ge=1, lt=2**31)]


class Finished(Frozen):
    """The outcome of a portion. Lists have one entry for each image that was kept; a sink leaves the last two out."""

    places: dict[str, list[int]] = Field(default_factory=dict)  # the numbers that the index is to hold
    names: list[str] | None = None  # if they differ from the source's
    file: StoredFile | None = None  # that has just this portion
    skipped: dict[int, str] = Field(default_factory=dict)  # why, by a corrupt image's index among the split's samples
    sizes: list[tuple[_Pixels, _Pixels]] = Field(default_factory=list)  # original height and width


@dataclass
class Collected:
    """A split as it is stored."""

    portions: list[tuple[Portion, Finished]]
    kept: NDArray[np.int64]  # (M,) indexes among the source's samples
    index: Index
    skipped: list[tuple[str, str]]  # the name of each corrupt image that was left out, and the reason


def collect(samples: OriginalSamples, portions: list[tuple[Portion, Finished]]) -> Collected:
    """Join what is known of a split's portions."""
    reasons = {index: reason for _, finished in portions for index, reason in finished.skipped.items()}
    kept = np.setdiff1d(np.arange(len(samples)), np.array(list(reasons), np.int64), assume_unique=True)
    sizes = [size for _, finished in portions for size in finished.sizes]
    stored = [name for _, finished in portions for name in finished.names or ()]
    names = stored or [samples.names[index] for index in kept.tolist()]
    places = {
        name: np.array([value for _, finished in portions for value in finished.places[name]], np.int64)
        for name in portions[0][1].places
    }
    index = Index(samples.labels[kept], np.array(sizes, np.int32).reshape(-1, 2), Index.encode_names(names), places)
    # an index has them now, and a million images' as lists take much memory
    slim = [(portion, finished.model_copy(sizes=[], places={})) for portion, finished in portions]
    return Collected(slim, kept, index, [(samples.names[index], reason) for index, reason in reasons.items()])


@dataclass(frozen=True)
class Output:
    """Where a sink is to write, and what."""

    target: Path  # the prepared folder; behind a link, the one that it leads to
    ready: Path  # the folder that gets its name once it is complete
    changes_images: bool  # more is asked for than the source's own bytes


class Sink(ABC):
    """One format's output."""

    wanted: ClassVar[Wanted]  # the form of an image that it needs, see ``Treatment``
    root: str | None = None  # of the manifest, as ``containers``, where the images stay where they are

    def __init__(self, original: Original, output: Output) -> None:
        self.ready, self.original = output.ready, original
        self.containers: dict[Split, dict[str, StoredFile]] = {}

    def edges(self, samples: OriginalSamples, longest: int) -> list[int]:
        """The edges of the portions to divide a split's samples into."""
        return [*range(0, len(samples), longest), len(samples)]

    @abstractmethod
    def write(self, portion: Portion, images: Images) -> Finished:
        """Take all images of a portion. When this returns, they are on the disk."""

    def path(self, portion: Portion) -> Path | None:
        """The file that has just this portion, in a format with such files."""
        return None

    def has(self, portion: Portion, finished: Finished) -> bool:
        """Whether a portion that an earlier process wrote is still there. Asked in order, before any writing."""
        path, file = self.path(portion), finished.file
        return path is None or (file is not None and path.exists() and path.stat().st_size == file.num_bytes)

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        """Complete the output, and return its files for the manifest."""
        return {}


@contextlib.contextmanager
def open_to_grow(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, made where it is missing, which is on the disk when the block ends. DataError if that is
    full."""
    with naming_disk_errors(path), path.open("r+b" if path.exists() else "w+b") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """The same for a file that takes its name once it is complete."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with naming_disk_errors(path):
        with open_to_grow(partial) as file:
            yield file
        partial.replace(path)
