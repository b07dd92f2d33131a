"""A split's finished portions -> its index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imagesets.manifest import Index
from imagesets.prepare.portions import Finished, Portion
from imagesets.prepare.samples import Samples


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


def collect(samples: Samples, portions: list[tuple[Portion, Finished]]) -> Collected:
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
