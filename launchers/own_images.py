"""A grid on images of one's own, before it trains: which of its runs would be too short to tell anything, or fail."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from rich.console import Console

from imagesets.catalog import CATALOG
from imagesets.fractions import fraction_indices
from imagesets.manifest import read_index
from imagesets.prepared import find_prepared
from launchers.options import GridOptions
from suite.errors import DataError
from suite.spec import Experiment

_FEW_STEPS = 50  # a smoke run takes sixty


def warn_of_few_images(experiments: Sequence[Experiment], options: GridOptions, console: Console) -> None:
    """Say which runs have too few images of a set that the catalog does not know."""
    for name in sorted({experiment.dataset for experiment in experiments} - set(CATALOG)):
        found = None
        with contextlib.suppress(DataError):  # is told where images are needed
            found = find_prepared(name, options.loader, options.data_dir)
        if found is None:
            continue
        (folder, manifest), trained = found, [e for e in experiments if e.dataset == name and e.is_trained]
        labels, num_images, refusals = read_index(folder, "train").labels, dict[float, int](), list[str]()
        for fraction in sorted({experiment.train_fraction for experiment in trained}):
            try:
                num_images[fraction] = len(fraction_indices(labels, fraction, len(manifest.classes)))
            except DataError as error:
                refusals.append(str(error))
        steps = [e.num_steps(num_images[e.train_fraction]) for e in trained if e.train_fraction in num_images]
        if short := [number for number in steps if number < _FEW_STEPS]:
            refusals.append(
                f"{len(short)} of {len(trained)} runs train for only {min(short)} to {max(short)} steps, which tells "
                "little: take a profile of more epochs, or more images"
            )
        for refusal in refusals:
            console.print(f"warning: {name} has {len(labels):,} training images: {refusal}", style="yellow")
