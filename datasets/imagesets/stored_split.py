"""A data set's name and a format -> its stored images. Used by the loader."""

import warnings
from pathlib import Path

import numpy as np

from imagesets.catalog import ImageSetInfo
from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.formats import find_format
from imagesets.formats.stored import StoredImages
from imagesets.manifest import SPLITS, Index, Manifest, Split, read_index, stale
from imagesets.originals.samples import place_rows
from imagesets.prepared import check_order, find_prepared, find_side
from suite.spec.resources import StorageFormat


def open_splits(
    info: ImageSetInfo, storage_format: StorageFormat, data_dir: Path | None = None
) -> dict[Split, StoredImages]:
    """Open both splits of an image set.

    Of a set that is part of another, such as ImageNet-100, the whole of the other is opened where the part was not
    prepared by itself. DataError if it is not there, incomplete, in another order than the set's own, or has labels
    that the set does not have.
    """
    found = find_prepared(info.name, storage_format, data_dir)
    if found is None:
        path = ensure(info.name, data_dir)
        arrays = open_arrays(path)  # of which every byte has been checked
        fetched: dict[Split, StoredImages] = {}
        for split in SPLITS:
            labels = arrays[f"{split}_labels"]
            sizes = np.full((len(labels), 2), info.image_size, np.int32)
            index = Index(labels, sizes, Index.encode_names([]), place_rows(arrays[f"{split}_images"]))
            fetched[split] = StoredImages(index, path.parent, [path])
            fetched[split].stored_side = info.image_size
        return fetched
    folder, manifest = found
    splits = {split: _open_prepared(folder, manifest, split) for split in SPLITS}
    check_order(manifest.dataset, str(folder), manifest.classes, {split: splits[split].labels for split in SPLITS})
    return splits


def _open_prepared(folder: Path, manifest: Manifest, split: Split) -> StoredImages:
    index, num_classes = read_index(folder, split), len(manifest.classes)
    if len(index.labels) != manifest.num_images[split]:
        found = f"the index has {len(index.labels)} {split} images, the manifest {manifest.num_images[split]}"
        raise stale(f"{folder}: {found}")
    if len(index.labels) == 0 or index.labels.min() < 0 or index.labels.max() >= num_classes:
        there = f"{index.labels.min(initial=0)} to {index.labels.max(initial=0)}"
        problem = f"the {split} split has {len(index.labels)} images with labels from {there}"
        raise stale(f"{folder}: {problem}, expected 0 to {num_classes - 1}")
    try:
        images = find_format(manifest.format).open(folder, split, index, manifest)
    except KeyError as error:
        raise stale(f"{folder}: the index has no {error} of its images") from error
    if "crc32" not in index.places:
        found = "was prepared without checksums of its images: damage to one goes unnoticed"
        warnings.warn(f"{folder} {found}. Check all with `prepare --check`, or prepare it again", stacklevel=2)
    images.stored_side = find_side(manifest, index)
    return images
