"""CIFAR and SVHN: arrays of pixels, which ``fetch`` makes ready from the originals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from imagesets import fetch
from imagesets.catalog import ImageSetInfo
from imagesets.fetch import storage
from imagesets.fetch.sources import find_local_sources
from imagesets.manifest import SPLITS
from imagesets.originals.samples import Original, OriginalSamples, PixelSamples


def find_folder(source: Path, info: ImageSetInfo) -> Path | None:
    """The folder that ``fetch`` has to look in, where ``source`` has or itself is an original of this set."""
    for folder in (source, source.parent):
        for label, _ in find_local_sources(folder, info) if folder.is_dir() else ():
            if folder == source or str(source) in (label, *label.split(", ")):
                return folder
    return None


def open_arrays(info: ImageSetInfo, data_dir: Path, source: Path | None) -> Original:
    """The set's arrays, from ``source`` or else from wherever ``fetch`` gets them.

    Raises:
        DataError: if no source has the set.
    """
    path = fetch.ensure(info.name, data_dir, source)
    arrays = storage.open_arrays(path)
    classes = info.class_names or tuple(str(label) for label in range(info.num_classes))
    samples: dict[str, OriginalSamples] = {}
    for split in SPLITS:
        images, labels = arrays[f"{split}_images"], np.asarray(arrays[f"{split}_labels"])
        names = [f"{split}/{classes[label]}/{index:06d}.png" for index, label in enumerate(labels.tolist())]
        assert isinstance(images, np.memmap)
        samples[split] = PixelSamples(path, images.offset, images.shape[1:], names, labels)
    return Original(classes, str(source or path), {split: samples[split] for split in SPLITS})
