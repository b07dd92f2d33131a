"""Sinks: what ``prepare`` asks of a format, which takes treated images a portion at a time.

After ``originals.treatment`` on the data's path. ``Format.make_sink`` chooses the sink; the journal notes what it says.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, ClassVar

from imagesets.fetch.storage import disk_error
from imagesets.formats.portions import Collected, Finished, Portion
from imagesets.manifest import Split, StoredFile
from imagesets.originals.samples import Original, OriginalSamples
from imagesets.originals.treatment import Treated, Wanted

Images = Iterator[tuple[int, Treated]]  # with their indexes among the split's samples


@dataclass(frozen=True)
class Output:
    """Where a sink is to write, and what.

    Attributes:
        target: the prepared folder; behind a link, the one that it leads to.
        ready: the folder that gets its name once it is complete.
        changes_images: whether more is asked for than the source's own bytes.
    """

    target: Path
    ready: Path
    changes_images: bool


@dataclass
class Written:
    """A sink's account of a portion: see ``Finished``."""

    places: dict[str, list[int]] = field(default_factory=dict)
    names: list[str] | None = None
    file: StoredFile | None = None


class Sink(ABC):
    """One format's output.

    Attributes:
        wanted: what it needs of an image, see ``Treatment``.
        in_place: whether the source stays and becomes the prepared folder.
        ready: the folder to write in.
        root: the folder that the names in the index start from, where it is not the prepared one.
    """

    wanted: ClassVar[Wanted]
    in_place: ClassVar[bool] = False
    root: str | None = None

    def __init__(self, ready: Path, original: Original) -> None:
        self.ready, self.original = ready, original

    def portion_lengths(self, samples: OriginalSamples, longest: int) -> list[int]:
        """The lengths of the portions to divide a split's samples into."""
        lengths = [longest] * (len(samples) // longest)
        return [*lengths, remainder] if (remainder := len(samples) % longest) else lengths

    @abstractmethod
    def write(self, portion: Portion, images: Images) -> Written:
        """Take all images of a portion. When this returns, they are on the disk."""

    def has(self, portion: Portion, finished: Finished) -> bool:
        """Whether a portion that an earlier process wrote is still there. Asked in order, before any writing."""
        return True

    def finish(self, splits: dict[Split, Collected]) -> dict[str, StoredFile]:
        """Complete the output, and return its files for the manifest."""
        return {}


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name once it is complete and on the disk.

    Raises:
        DataError: if the disk is full.
    """
    partial = path.with_name(f".{path.name}.partial")
    with naming_disk_errors(path):
        with partial.open("wb") as file:
            yield file
            flush(file)
        partial.replace(path)


def flush(file: BinaryIO) -> None:
    """Wait until it is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def has_file(path: Path, finished: Finished) -> bool:
    """Whether the file of a finished portion is there and has its size."""
    return finished.file is not None and path.exists() and path.stat().st_size == finished.file.num_bytes


@contextlib.contextmanager
def naming_disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error
