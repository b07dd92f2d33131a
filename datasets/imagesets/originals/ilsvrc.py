"""ImageNet as ILSVRC 2012 distributes it: a tar of 1000 tars, a flat tar, and a devkit that says what is in the latter.

The labels are not the devkit's ids: they are the places of the WordNet ids in sorted order, as everybody trains with.
"""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

from imagesets.fetch.convert import read_members, refusing_broken
from imagesets.manifest import SPLITS
from imagesets.originals.samples import Original, OriginalSamples, sort_classes
from suite.base.archives import Member, list_tar_members
from suite.base.errors import DataError

TRAIN_TAR = "ILSVRC2012_img_train.tar"
VAL_TAR = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12"
_DEVKIT_TAR = f"{DEVKIT}.tar.gz"
FILES = (TRAIN_TAR, VAL_TAR, _DEVKIT_TAR)
_GROUND_TRUTH = "data/ILSVRC2012_validation_ground_truth.txt"
_META = "data/meta.mat"
_KAGGLE = "LOC_val_solution.csv"
_VAL_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.JPEG", re.IGNORECASE)


def open_tars(source: Path, num_kept: int | None) -> Original:
    """ImageNet in its tars; of its sorted classes the first ``num_kept``, or all for None. DataError if a file is
    missing, cut short, or not laid out as distributed."""
    train, inner, rows = source / TRAIN_TAR, dict[str, Member](), list[tuple[int, Member]]()
    for member in list_tar_members(train):
        if (match := re.fullmatch(r"(?:\./)?([\w-]+)\.tar", member.name)) is None:
            told = "expected only the classes' tars, such as n01440764.tar"
            raise DataError(f"{train}: found member {member.name!r}, {told}")
        inner[match[1]] = member
    classes = tuple(sort_classes(inner)[:num_kept])
    for label, name in enumerate(classes):
        images = sorted(list_tar_members(train, inner[name]), key=lambda member: member.name)
        if not images:
            raise DataError(f"class {name!r} has no images: {train}: {inner[name].name} is empty")
        rows += [(label, image) for image in images]
    label_of = read_val_labels(source, classes, all_kept=num_kept is None)
    found = [(label_of(member.name.rpartition("/")[2]), member) for member in list_tar_members(source / VAL_TAR)]
    kept = sorted(((label, m) for label, m in found if label is not None), key=lambda pair: (pair[0], pair[1].name))
    samples = {"train": _as_samples(train, classes, rows), "test": _as_samples(source / VAL_TAR, classes, kept)}
    return Original(classes, str(source), {split: samples[split] for split in SPLITS})


def _as_samples(tar: Path, classes: tuple[str, ...], rows: list[tuple[int, Member]]) -> OriginalSamples:
    names = [f"{classes[label]}/{member.name}" for label, member in rows]
    places = [(0, member.offset, member.length) for _, member in rows]
    return OriginalSamples(names, [label for label, _ in rows], [tar], places)


def read_val_labels(source: Path, classes: tuple[str, ...], all_kept: bool = True) -> Callable[[str], int | None]:
    """A function from a validation image's file name to its label; None where the class is not one of ``classes``.
    DataError if neither the devkit nor Kaggle's table is in ``source`` or above it. The function: for a name that they
    do not know, and, if ``all_kept``, for a class that is not there."""
    wnids, ground_truth = _read_ground_truth(source)
    labels = {name: label for label, name in enumerate(classes)}

    def label_of(name: str) -> int | None:
        match = _VAL_NAME.fullmatch(name)
        wnid = wnids.get(int(match[1])) if match else None
        if wnid is None:
            raise DataError(
                f"{ground_truth} says no class for {name}. Expected ILSVRC2012_val_00000001.JPEG and so on."
            )
        if all_kept and wnid not in labels:
            raise DataError(f"{name} is of class {wnid}, which the train images do not have")
        return labels.get(wnid)

    return label_of


def _read_ground_truth(source: Path) -> tuple[dict[int, str], Path]:
    """The WordNet id of each validation image, by the number in its name; and the file that said so."""
    for folder in (source, *source.absolute().parents[:3]):
        for name, read in ((_DEVKIT_TAR, _read_devkit), (DEVKIT, _read_devkit), (_KAGGLE, _read_kaggle)):
            if (path := folder / name).exists():
                try:
                    with refusing_broken():
                        return read(path), path
                except (DataError, csv.Error) as error:
                    raise DataError(f"{path}: {error}") from error
    raise DataError(
        f"the validation images are not in class folders, and nothing says their classes. Put {_DEVKIT_TAR}, or "
        f"Kaggle's {_KAGGLE}, into {source}."
    )


def _read_kaggle(path: Path) -> dict[int, str]:
    """The class of each validation image in Kaggle's table, by the number in the image's name."""
    wnids = {}
    with path.open(encoding="utf-8-sig", newline="") as file:  # spreadsheets put a mark before the first column
        rows = csv.DictReader(file)
        for row in rows:
            number, words = row["ImageId"].rpartition("_")[2], (row["PredictionString"] or "").split()
            if not number or not words:
                raise DataError(f"line {rows.line_num} has an empty field, expected an image's name and its class")
            wnids[int(number)] = words[0]
    return wnids


def _read_devkit(path: Path) -> dict[int, str]:
    """The same from two files of the devkit or its tar: ids of WordNet ids, and one id a line, the images in order."""
    import scipy.io  # slow to import, and few need it

    if path.is_dir():
        meta, ground_truth = (path / _META).read_bytes(), (path / _GROUND_TRUTH).read_bytes()
    else:
        members = read_members(path, {f"{DEVKIT}/{_META}", f"{DEVKIT}/{_GROUND_TRUTH}"})
        meta, ground_truth = members[f"{DEVKIT}/{_META}"], members[f"{DEVKIT}/{_GROUND_TRUTH}"]
    synsets = scipy.io.loadmat(io.BytesIO(meta), squeeze_me=True, variable_names=["synsets"])["synsets"]
    wnid_of = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets if int(row["num_children"]) == 0}
    return {number: wnid_of[int(line)] for number, line in enumerate(ground_truth.split(), start=1)}
