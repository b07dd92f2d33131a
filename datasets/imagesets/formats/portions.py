"""The portions in which a format takes the samples of a split, what came of each, and the split as it is stored.

A portion is a run of samples of one split: a shard, where there are shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from imagesets.manifest import Index, Split, StoredFile
from imagesets.originals.samples import OriginalSamples
from suite.base.frozen import Frozen


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
    """The outcome of a portion. Lists have one entry for each image that was kept.

    Attributes:
        skipped: the reason for each corrupt image, by its index among the split's samples.
        sizes: original height and width.
        places: what the index is to hold.
        names: where they differ from the source's.
        file: of the file that has just this portion, if there is one.
    """

    skipped: dict[int, str]
    sizes: list[tuple[_Pixels, _Pixels]]
    places: dict[str, list[int]]
    names: list[str] | None = None
    file: StoredFile | None = None

    @property
    def num_kept(self) -> int:
        return len(self.sizes)


def divide(split: Split, lengths: list[int]) -> Iterator[Portion]:
    """Portions of these lengths, one after the other."""
    start = 0
    for number, length in enumerate(lengths):
        yield Portion(split, number, start, start + length)
        start += length


@dataclass
class Collected:
    """A split as it is stored.

    Attributes:
        portions: in order.
        kept: (M,) indexes among the source's samples of those that are stored.
        index: of those.
        skipped: name and reason of each corrupt image that was left out.
    """

    portions: list[tuple[Portion, Finished]]
    kept: NDArray[np.int64]
    index: Index
    skipped: list[tuple[str, str]]


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
    return Collected(portions, kept, index, [(samples.names[index], reason) for index, reason in reasons.items()])
