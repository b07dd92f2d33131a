"""Image folders: ``train/CLASS/...`` and ``val/CLASS/...`` (or ``test``), as ImageNet is kept almost everywhere."""

import os
from pathlib import Path

from imagesets.originals.ilsvrc import read_val_labels
from imagesets.originals.samples import Original, OriginalSamples, class_name, list_some, sort_classes
from suite.base.errors import DataError

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_ROOTS = (".", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC")
_TEST_FOLDERS = ("val", "validation", "valid", "test")


def find_root(source: Path) -> Path | None:
    """The folder that has ``train/``: the source, or ImageNet's own layout below it."""
    return next((source / root for root in _ROOTS if (source / root / "train").is_dir()), None)


def find_test(root: Path) -> Path | None:
    """The folder of the images to test on, beside ``train/``."""
    return next((root / name for name in _TEST_FOLDERS if (root / name).is_dir()), None)


def open_folders(source: Path, root: Path, num_kept: int | None) -> Original:
    """The samples of ``source``, whose images lie below ``root``: sorted classes, of which the first ``num_kept`` are
    kept (None: all), and sorted files in each. Those of a flat test folder are labelled as ImageNet's. What is passed
    over is counted in a note. DataError if there is no test folder, a class is empty, or one folder has other classes
    than the other."""
    test = find_test(root)
    if test is None:
        raise DataError(f"{root} has train/ but none of {', '.join(_TEST_FOLDERS)}. Images to test on are needed, too.")
    train, passed = list_folders(root / "train")
    if not train:
        raise DataError(f"{root / 'train'} has no folders. Expected one for each class, with its images.")
    tested, other_files = list_folders(test)
    classes = sort_classes(train)[:num_kept]
    if tested:
        check_classes({str(root / "train"): classes, str(test): sort_classes(tested)[:num_kept]})
        passed += other_files
        test_samples = _list_classes(root, tested, classes, passed)
    else:
        label_of = read_val_labels(source, tuple(classes), all_kept=num_kept is None)
        images = [(label_of(name.rpartition("/")[2]), name) for name in _list_images(root, test.name, passed)]
        if not images:
            raise DataError(f"{test} has no images and no folders. Expected one folder for each class.")
        kept = sorted((label, name) for label, name in images if label is not None)  # as if there were class folders
        test_samples = OriginalSamples([name for _, name in kept], [label for label, _ in kept], root=root)
    train_samples, notes = _list_classes(root, train, classes, passed), []
    if sorted(classes) != classes:
        notes.append(f"the class folders are numbers, and sorted as such: {list_some(classes)}")
    if passed:
        notes.append(
            f"warning: passed over {len(passed):,} in {root} that are no images in a class folder "
            f"({', '.join(EXTENSIONS)}): {list_some(passed, 10)}"
        )
    return Original(tuple(classes), str(source), {"train": train_samples, "test": test_samples}, notes)


def check_classes(found: dict[str, list[str]]) -> None:
    """Raise DataError where one of two folders has other classes than the other."""
    (train_folder, train), (test_folder, test) = found.items()
    if differing := sorted(set(train) ^ set(test)):
        only = train_folder if differing[0] in train else test_folder
        raise DataError(
            f"{train_folder} has {len(train)} classes and {test_folder} has {len(test)}, and they differ: "
            f"{differing[0]!r} is only in {only}. Both need the same class folders."
        )


def _list_classes(root: Path, folders: dict[str, str], classes: list[str], passed: list[str]) -> OriginalSamples:
    names, labels = [], []
    for label, name in enumerate(classes):
        files = _list_images(root, folders[name], passed)
        if not files:
            raise DataError(f"class {name!r} has no images: {root / folders[name]} is empty. Remove it or fill it.")
        names += files
        labels += [label] * len(files)
    return OriginalSamples(names, labels, root=root)


def _list_images(root: Path, folder: str, passed: list[str]) -> list[str]:
    """The images in a folder and below, as sorted paths from ``root``; other files are added to ``passed``. DataError
    if a link leads to a folder whose images are taken already, such as one that it is in."""
    names: list[str] = []
    seen: dict[tuple[int, int], str] = {}
    for where, folders, files in os.walk(root / folder, onerror=_refuse, followlinks=True):
        about = Path(where).stat()
        known = seen.setdefault((about.st_dev, about.st_ino), where)
        if known != where:
            raise DataError(f"{where} leads to {known}, whose images would be there twice. Remove the link.")
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = os.path.relpath(where, root).replace(os.sep, "/")
        for name in sorted(files):
            if not name.startswith("."):
                (names if name.lower().endswith(EXTENSIONS) else passed).append(f"{prefix}/{name}")
    return sorted(names)


def _refuse(error: OSError) -> None:
    raise error


def list_folders(folder: Path) -> tuple[dict[str, str], list[str]]:
    """The class folders in a split's folder, {name of the class: path from its root}, and the other files there.
    DataError if the name of one cannot be a class's, or two are one name, composed and decomposed."""
    found: dict[str, str] = {}
    other_files = []
    with os.scandir(folder) as entries:
        visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: entry.name)
    for entry in visible:
        shown = f"{folder.name}/{entry.name}"
        if not entry.is_dir():
            is_there = os.path.exists(entry)  # noqa: PTH110  # pathlib's raises where a link's folder is closed to us
            other_files.append(shown if is_there else f"{shown} (a link to nothing)")
        elif found.setdefault(class_name(entry.name), shown) != shown:
            raise DataError(f"{folder} has {entry.name!r} in composed and in decomposed Unicode. Make the two one.")
    return found, other_files
