"""A grid on images of one's own, before it trains: which of its runs would be too short to tell anything, or fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from imagesets.catalog import CATALOG
from imagesets.fractions import fraction_indices
from imagesets.manifest import read_index
from imagesets.prepared import find_prepared
from launchers.options import GridOptions
from suite.errors import DataError
from suite.spec import Experiment

_FEW_STEPS = 50  # a smoke run takes sixty


def find_too_few_images(experiments: Sequence[Experiment], options: GridOptions) -> Iterator[str]:
    """Say which runs have too few images of a set that the catalog does not know, a line each."""
    trained = [one for one in experiments if one.is_trained and one.dataset not in CATALOG]
    steps = []
    for name, fraction in sorted({(one.dataset, one.train_fraction) for one in trained}):
        with contextlib.suppress(DataError):  # a set that is not there is told where it is needed
            if found := find_prepared(name, options.loader, options.data_dir):
                labels = read_index(found[0], "train").labels
                try:
                    kept = fraction_indices(labels, fraction, len(found[1].classes))
                except DataError as error:
                    yield f"runs on {name} will fail: {error}"
                    continue
                chosen = [one for one in trained if (one.dataset, one.train_fraction) == (name, fraction)]
                steps += [one.num_steps(len(kept)) for one in chosen]
    if short := [number for number in steps if number < _FEW_STEPS]:
        yield (
            f"{len(short)} of {len(trained)} runs train for only {min(short)} to {max(short)} steps, which tells "
            "little: take a profile of more epochs, or more images"
        )
