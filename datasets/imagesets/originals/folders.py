"""Image folders: ``train/CLASS/...`` and ``val/CLASS/...`` (or ``test``), as ImageNet is kept almost everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from imagesets.originals.samples import FileSamples, Original
from suite.errors import DataError

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_ROOTS = (".", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC")
_TEST_FOLDERS = ("val", "validation", "valid", "test")

FlatLabels = Callable[[Path, tuple[str, ...]], Callable[[str], int | None]]


def find_root(source: Path) -> Path | None:
    """The folder that has ``train/``: the source, or ImageNet's own layout below it."""
    return next((source / root for root in _ROOTS if (source / root / "train").is_dir()), None)


def open_folders(source: Path, root: Path, num_kept: int | None, flat_labels: FlatLabels) -> Original:
    """An image folder's samples: sorted classes, sorted files in each.

    Args:
        source: what the user named.
        root: the folder that has ``train/``.
        num_kept: keep only so many of the sorted classes; None keeps all.
        flat_labels: called where the test folder has no class folders; gives a function from a file's name to its
            label, or to None where the file's class is not kept.

    Raises:
        DataError: no test folder, an empty class, other classes in the one than in the other.
    """
    test = next((root / name for name in _TEST_FOLDERS if (root / name).is_dir()), None)
    if test is None:
        raise DataError(f"{root} has train/ but none of {', '.join(_TEST_FOLDERS)}. Images to test on are needed, too.")
    classes = _list_folders(root / "train")[:num_kept]
    if not classes:
        raise DataError(f"{root / 'train'} has no folders. Expected one for each class, with its images.")
    if folders := _list_folders(test)[:num_kept]:
        _check_same(classes, folders, root / "train", test)
        test_samples = _list_classes(root, test.name, classes)
    else:
        test_samples = _list_flat(root, test, flat_labels(source, tuple(classes)))
    return Original(tuple(classes), str(source), {"train": _list_classes(root, "train", classes), "test": test_samples})


def _list_classes(root: Path, split: str, classes: list[str]) -> FileSamples:
    names, labels = [], []
    for label, name in enumerate(classes):
        files = _list_images(root, f"{split}/{name}")
        if not files:
            raise DataError(f"class {name!r} has no images: {root / split / name} is empty. Remove it or fill it.")
        names += files
        labels += [label] * len(files)
    return FileSamples(root, names, labels)


def _list_flat(root: Path, folder: Path, label_of: Callable[[str], int | None]) -> FileSamples:
    """Ordered as if there were class folders, so that the order does not depend on how a set was unpacked."""
    found = [(label_of(name.rpartition("/")[2]), name) for name in _list_images(root, folder.name)]
    if not found:
        raise DataError(f"{folder} has no images and no folders. Expected one folder for each class.")
    kept = sorted((label, name) for label, name in found if label is not None)
    return FileSamples(root, [name for _, name in kept], [label for label, _ in kept])


def _list_images(root: Path, folder: str) -> list[str]:
    """The images in a folder and below, as sorted paths from ``root``.

    Raises:
        OSError: a folder below it cannot be read.
        DataError: a link leads to a folder whose images are taken already, such as one that it is in.
    """
    names: list[str] = []
    seen: dict[tuple[int, int], str] = {}
    for where, folders, files in os.walk(root / folder, onerror=_refuse, followlinks=True):
        about = os.stat(where)
        known = seen.setdefault((about.st_dev, about.st_ino), where)
        if known != where:
            raise DataError(f"{where} leads to {known}, whose images would be there twice. Remove the link.")
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = os.path.relpath(where, root).replace(os.sep, "/")
        names += [f"{prefix}/{n}" for n in files if not n.startswith(".") and n.lower().endswith(EXTENSIONS)]
    return sorted(names)


def _refuse(error: OSError) -> None:
    raise error


def _list_folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _check_same(train: list[str], test: list[str], train_folder: Path, test_folder: Path) -> None:
    differing = sorted(set(train) ^ set(test))
    if differing:
        only = train_folder if differing[0] in train else test_folder
        raise DataError(
            f"{train_folder} has {len(train)} classes and {test_folder} has {len(test)}, and they differ: "
            f"{differing[0]!r} is only in {only}. Both need the same class folders."
        )
