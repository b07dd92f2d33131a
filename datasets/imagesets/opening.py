"""A data set's name and a format -> its stored images. Used by the loader."""

from __future__ import annotations

from pathlib import Path

from imagesets.catalog import ImageSetInfo
from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.formats import find_format
from imagesets.formats.memory import MemoryImages
from imagesets.formats.stored import StoredImages
from imagesets.manifest import Manifest, Split, read_index
from imagesets.prepared import find_prepared, find_side
from suite.errors import DataError
from suite.spec import StorageFormat


def open_split(
    info: ImageSetInfo, split: Split, storage_format: StorageFormat, data_dir: Path | None = None
) -> StoredImages:
    """Open one split of an image set.

    Args:
        info: of the set. Of one that is part of another, such as ImageNet-100, the whole of the other is opened where
            it was not prepared by itself.
        split: "train" or "test".
        storage_format: the format that is read.
        data_dir: where image sets are kept; None is the default.

    Raises:
        DataError: if it is not there, incomplete, or has labels that the set does not have.
    """
    found = find_prepared(info.name, storage_format, data_dir)
    if found is None:
        path = ensure(info.name, data_dir)
        arrays = open_arrays(path)
        images: StoredImages = MemoryImages(arrays[f"{split}_images"], arrays[f"{split}_labels"])
        images.stored_side = info.image_size
        num_classes = info.num_classes
    else:
        path, manifest = found
        images, num_classes = _open_prepared(path, manifest, split), len(manifest.classes)
    if len(images) == 0 or images.labels.min() < 0 or images.labels.max() >= num_classes:
        raise DataError(
            f"{path}: the {split} split has {len(images)} images with labels from {images.labels.min(initial=0)} to "
            f"{images.labels.max(initial=0)}, expected 0 to {num_classes - 1}. Prepare the image set again."
        )
    return images


def _open_prepared(folder: Path, manifest: Manifest, split: Split) -> StoredImages:
    index = read_index(folder, split)
    if len(index.labels) != manifest.num_images[split]:
        raise DataError(
            f"{folder}: the index has {len(index.labels)} {split} images, the manifest {manifest.num_images[split]}. "
            "Prepare the image set again."
        )
    try:
        images = find_format(manifest.format).open(folder, split, index, manifest)
    except KeyError as error:
        raise DataError(f"{folder}: the index has no {error} of its images. Prepare the image set again.") from error
    images.max_side, images.stored_side = manifest.max_side, find_side(manifest, index)
    return images
