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
    trained, steps = [one for one in experiments if one.is_trained and one.dataset not in CATALOG], []
    for name in sorted({one.dataset for one in trained}):
        found = None
        with contextlib.suppress(DataError):  # a set that is not there is told where it is needed
            found = find_prepared(name, options.loader, options.data_dir)
        labels = read_index(found[0], "train").labels if found else ()
        for fraction in sorted({one.train_fraction for one in trained if one.dataset == name}) if found else ():
            try:
                num_kept = len(fraction_indices(labels, fraction, max(labels) + 1))
            except DataError as error:
                yield f"runs on {name} will fail: {error}"
                continue
            chosen = [one for one in trained if (one.dataset, one.train_fraction) == (name, fraction)]
            steps += [one.num_steps(num_kept) for one in chosen]
    if short := [number for number in steps if number < _FEW_STEPS]:
        range_of_steps = f"{min(short)} to {max(short)} steps"
        yield f"{len(short)} runs train for only {range_of_steps}: take a profile of more epochs, or more images"
