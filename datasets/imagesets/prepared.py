"""Where a named image set lies, and in which format. No torch here: planning asks, too."""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from imagesets.catalog import CATALOG, ImageSetInfo, get_info
from imagesets.fetch import ensure
from imagesets.manifest import MANIFEST, Index, Manifest, Split, prepared_folder, read_index, read_manifest, stale
from suite.base.errors import DataError, SpecError
from suite.base.files import default_data_dir
from suite.spec.experiment import Experiment
from suite.spec.resources import StorageFormat


def find_info(name: str, data_dir: Path | None = None, storage_format: StorageFormat | None = None) -> ImageSetInfo:
    """The facts of an image set: the catalog's, or of a set of the user's own, its manifest's in any format for None.
    SpecError if neither knows it, or it is there in other formats alone."""
    if name in CATALOG:
        return get_info(name)
    folders = _find_folders(name, data_dir or default_data_dir())
    for one, folder in folders.items():
        if storage_format in (None, one):
            manifest = read_manifest(folder)
            return ImageSetInfo(
                name=manifest.dataset,
                title=manifest.dataset,
                num_classes=len(manifest.classes),
                image_size=manifest.max_side or 224,
                num_train=manifest.num_images["train"],
                num_test=manifest.num_images["test"],
                mean=CATALOG["imagenet"].mean,
                std=CATALOG["imagenet"].std,
            )
    try:
        return get_info(name)
    except SpecError as error:
        if not folders:
            for one in get_args(StorageFormat):
                if (folder := prepared_folder(data_dir or default_data_dir(), name, one)).is_symlink():
                    read_manifest(folder)  # names the link, which leads nowhere
            raise
        first, folder = next(iter(folders.items()))
        raise SpecError(
            f"{name} is prepared in {folder.parent} for --loader {' and '.join(folders)}, not for "
            f"{storage_format}: choose --loader {first}, or prepare it with --format {storage_format}"
        ) from error


def _find_folders(name: str, data_dir: Path) -> dict[StorageFormat, Path]:
    """The folders of a set that are complete, by format, in the order in which a reader prefers them."""
    folders = {one: prepared_folder(data_dir, name, one) for one in get_args(StorageFormat)}
    return {one: folder for one, folder in folders.items() if (folder / MANIFEST).exists()}


def choose_format(info: ImageSetInfo, data_dir: Path | None = None) -> StorageFormat:
    """The format to read a set in where ``--loader`` names none: the one that it, or else the set that it is part of,
    is prepared in. Of several the first in ``StorageFormat``; the images are the same in each. DataError if they are
    not, since some were resized or encoded again."""
    for name in filter(None, (info.name, info.subset_of)):
        folders = _find_folders(name, data_dir or default_data_dir())
        manifests = [read_manifest(folder) for folder in folders.values()]
        if len({(manifest.max_side, manifest.quality) for manifest in manifests}) > 1:
            raise DataError(
                f"{name} is prepared for --loader {' and '.join(folders)}, whose images were resized or encoded "
                "differently. Name the one to read: --loader"
            )
        if folders:
            return next(iter(folders))
    return "memory" if info.can_be_fetched or info.packaged else "in_place"


def find_prepared(
    name: str, storage_format: StorageFormat | None, data_dir: Path | None = None
) -> tuple[Path, Manifest] | None:
    """The folder and manifest of a prepared set, or of the larger set that it is the first classes of. DataError if it
    is not there, or not complete.

    A format that is None is that of ``choose_format``; a result that is, a set in memory that can be fetched.
    """
    data_dir = data_dir or default_data_dir()
    info = find_info(name, data_dir, storage_format)
    storage_format = storage_format or choose_format(info, data_dir)
    folders = [prepared_folder(data_dir, one, storage_format) for one in filter(None, (name, info.subset_of))]
    folder = next(filter(Path.is_dir, folders), folders[0])
    if storage_format == "memory" and (info.can_be_fetched or info.packaged) and not folder.is_dir():
        return None
    manifest = read_manifest(folder)  # says what is missing
    found, expected = (manifest.dataset, manifest.format), (folder.parent.name, folder.name)
    if found != expected:  # it was renamed, or copied to another set's place
        raise DataError(
            f"{folder} holds {found[0]} in format {found[1]}, by its manifest; expected {expected[0]} in "
            f"format {expected[1]}. Give the folder its name back, or prepare the image set."
        )
    if manifest.dataset in CATALOG and len(manifest.classes) != CATALOG[manifest.dataset].num_classes:
        wanted = f"{CATALOG[manifest.dataset].num_classes} of {manifest.dataset}"
        raise stale(f"{folder} has {len(manifest.classes)} classes, expected {wanted}")
    return folder, manifest


def check_order(
    dataset: str, where: str, classes: tuple[str, ...], labels: Mapping[Split, NDArray[np.int64]]
) -> list[str]:
    """Hold a set that bears a catalog's name against it: its classes, and the order of its images; warn where the
    catalog does not know the order. DataError if it is not that set, since its runs would bear the ids of that set's.

    Args:
        dataset, where: the name, which passes if the catalog does not know it; and the folder that messages name.
        classes, labels: the names of the classes, or their numbers where they have none, and each split's labels.
    """
    if (info := CATALOG.get(dataset)) is None:
        return []
    expected = info.classes_sha256 if len(classes) == info.num_classes else ()
    has_names = not all(name.isdecimal() for name in classes)  # as classes are called that have none
    if has_names and expected and hashlib.sha256("\n".join(classes).encode()).hexdigest() not in expected:
        raise other_set(info, where, f"its classes, {classes[0]} to {classes[-1]}, are not those of that set")
    is_sorted = not any((np.diff(found) < 0).any() for found in labels.values())
    for split, found in labels.items():
        digest = hashlib.sha256(found.astype(np.uint8).data).hexdigest()
        if digest != info.sha256[f"{split}_labels"] if info.sha256 else info.can_be_fetched and is_sorted:
            raise other_set(info, where, f"its {len(found):,} {split} images are others, or in another order")
    if is_sorted or info.can_be_fetched or info.packaged:  # no set that is fetched is sorted by class
        return []
    return [f"warning: {where} is not sorted by class as {info.title} is: fractions of it keep other images"]


def other_set(info: ImageSetInfo, where: str, found: str) -> DataError:
    """The error for what bears a catalog's name and is not that set."""
    return DataError(
        f"{where} is not {info.title}: {found}. Runs on it would bear the ids of that set's. Give it a name of its own "
        "(--dataset NAME), or prepare that set from its own files."
    )


def find_side(manifest: Manifest, index: Index) -> int | None:
    """The side of all images of a split as they are stored, where they are squares of one size."""
    if manifest.format == "memory" and manifest.max_side:
        return manifest.max_side  # all are squashed to it
    stored = np.minimum(index.sizes, manifest.max_side or index.sizes.max())
    squares = bool((index.sizes[:, 0] == index.sizes[:, 1]).all() and (stored == stored[0]).all())
    return int(stored[0, 0]) if squares else None


def check_side(experiment: Experiment, side: int | None) -> None:
    """Raise SpecError where an experiment's recipe crops images of another side than they have."""
    if experiment.recipe.crop == "pad" and side != experiment.image_size:
        expected = experiment.image_size
        raise SpecError(
            f"recipe {experiment.recipe.name!r} crops padded images of their own size, {side or 'which differ'}; "
            f"expected image_size {expected}: prepare {experiment.dataset} with --format memory --max-side {expected}"
        )


def check_sides(experiments: Iterable[Experiment], storage_format: StorageFormat | None, data_dir: Path | None) -> None:
    """``check_side`` for all experiments, before any is started, as far as their images are prepared."""
    for experiment in {(e.dataset, e.image_size): e for e in experiments if e.recipe.crop == "pad"}.values():
        with contextlib.suppress(DataError, OSError):  # make_ready reports images that are not there
            if found := find_prepared(experiment.dataset, storage_format, data_dir):
                check_side(experiment, find_side(found[1], read_index(found[0], "train")))


def make_ready(name: str, storage_format: StorageFormat | None, data_dir: Path | None = None) -> None:
    """Fetch what can be fetched, before anything is started; raise DataError if a set cannot be opened."""
    if find_prepared(name, storage_format, data_dir) is None:
        ensure(name, data_dir)
