"""The journal of a conversion: which portions of the samples are done, so that a killed one goes on.

A portion is a run of samples of one split: a shard, where there are shards. It is noted here only once all that it
wrote is on the disk, and a conversion with other settings starts over.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from imagesets.manifest import Split, StoredFile
from imagesets.storage import write_file
from suite.spec import Frozen

SETTINGS = "settings.json"


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


class Finished(Frozen):
    """What became of a portion. Lists have one entry for each image that was kept.

    Attributes:
        skipped: the reason for each corrupt image, by its index among the split's samples.
        sizes: original height and width.
        places: what the index is to hold.
        names: where they differ from the source's.
        file: of the file that has just this portion, if there is one.
    """

    skipped: dict[int, str]
    sizes: list[tuple[int, int]]
    places: dict[str, list[int]]
    names: list[str] | None = None
    file: StoredFile | None = None

    @property
    def num_kept(self) -> int:
        return len(self.sizes)


class Journal:
    """The notes in a working folder.

    Attributes:
        ready: the folder below it that becomes the prepared one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.ready = folder, folder / "ready"

    def open(self, settings: dict[str, Any]) -> str | None:
        """Start, or go on if all settings are the same.

        Returns:
            What differs, in words, if the work of an earlier conversion was dropped.
        """
        path, text, changed = self.folder / SETTINGS, json.dumps(settings, indent=1), None
        if self.folder.exists():
            try:
                earlier = json.loads(path.read_bytes())
            except (OSError, ValueError):
                earlier = {}
            if earlier == json.loads(text):
                return None
            changed = ", ".join(key for key in earlier if earlier[key] != settings.get(key)) or None
            shutil.rmtree(self.folder)
        self.ready.mkdir(parents=True)
        write_file(path, text.encode())
        return changed

    def read(self, portion: Portion) -> Finished | None:
        """A portion's note; None where it is not done."""
        try:
            return Finished.model_validate_json(self._path(portion).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, portion: Portion, finished: Finished) -> None:
        write_file(self._path(portion), finished.model_dump_json().encode())

    def _path(self, portion: Portion) -> Path:
        return self.folder / f"{portion.stem}.json"


def divide(split: Split, lengths: list[int]) -> Iterator[Portion]:
    """Portions of these lengths, one after the other."""
    start = 0
    for number, length in enumerate(lengths):
        yield Portion(split, number, start, start + length)
        start += length
