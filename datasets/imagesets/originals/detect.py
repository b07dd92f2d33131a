"""A name and a folder (``--dataset``, ``--source``) -> an image set's samples; counts held against the catalog."""

import glob
import os
import re
from pathlib import Path

import braceexpand
import numpy as np

from imagesets import fetch
from imagesets.catalog import CATALOG, ImageSetInfo
from imagesets.fetch import storage
from imagesets.fetch.sources import find_local_sources, list_forms
from imagesets.manifest import SPLITS, Split
from imagesets.originals import beton, containers, folders, ilsvrc, mds, parquet, shards, zips
from imagesets.originals.containers import Options
from imagesets.originals.samples import Original, OriginalSamples, list_some, place_rows
from suite.base.archives import GZIP
from suite.base.errors import DataError, SpecError, unknown_name
from suite.base.far.remote import SCHEMES, is_address, list_folder
from suite.base.far.remote_path import common_folder, path_of

_SHARDS, _ZIPS = (".tar", *GZIP), (".zip",)
_CONTAINERS = {("index.json",): mds.list_shards, (".parquet",): parquet.list_file, (".beton", ".ffcv"): beton.list_file}
_URL = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")
_FREE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def open_original(dataset: str, source: str | None, data_dir: Path, options: Options | None = None) -> Original:
    """The samples of an image set, in its own order. SpecError if the name cannot be, or nothing can be fetched under
    it; DataError if the source is not there, broken, or not what the name says.

    Args:
        dataset, options: a name in the catalog or of the user's own, and how containers are listed.
        source: a folder, one of its files, or a pattern of shards; None lets ``fetch`` get them into ``data_dir``.
    """
    info = CATALOG.get(dataset)
    if source is None:
        if info is None:
            raise SpecError(f"{unknown_name('dataset', dataset, CATALOG)} Images of your own need --source DIR.")
        if not (info.can_be_fetched or info.packaged):
            raise SpecError(f"{dataset} cannot be fetched. Name the folder that has it: --source DIR.")
        return _open_arrays(info, data_dir, None)
    if _FREE_NAME.fullmatch(dataset) is None:
        raise SpecError(f"--dataset {dataset!r} cannot be a folder's name here. Use letters, digits, _ and -.")
    chosen = _expand(source)
    folder = path_of(common_folder(map(str, chosen))) if chosen else _find_source(source)
    if info is not None and isinstance(folder, Path) and any(find_local_sources(folder, info)):
        return _open_arrays(info, data_dir, folder)
    try:
        original = _open(folder, info, chosen, options or Options())
    except OSError as error:
        raise DataError(f"{error.filename or folder} cannot be read: {error.strerror}. Make it readable.") from error
    if chosen:
        original.source = source
    if info is None:
        original.notes.append(f"{dataset} is not in the catalog: taken as an image set of your own")
    else:
        original.notes += _compare(original, info)
    return original


def _expand(source: str) -> list[Path] | None:
    """The files that a pattern with braces, *, ? or [] names; None for what is none. DataError if one that it names is
    not there."""
    is_far = is_address(source)
    if not re.search(r"[*?{\[]", source) or (not is_far and (Path(source).exists() or _URL.match(source))):
        return None
    files = []
    for name in braceexpand.braceexpand(str(path_of(source).expanduser().absolute())):
        path = path_of(name)
        if is_far:
            found = sorted(path.parent.glob(path.name)) if re.search(r"[*\[]", path.name) else [path]
        else:
            found = sorted(map(Path, glob.glob(name)))  # noqa: PTH207  # pathlib's takes no absolute ones
        if not found:
            raise DataError(f"{name} is not there, which --source {source!r} names. Bring it, or correct the pattern.")
        files += found
    return files


def _find_source(source: str) -> Path:
    if is_address(source):
        if not path_of(source).is_file() and not list_folder(source):
            raise DataError(f"{source} is empty, or not there. --source names the folder of the original images.")
        return path_of(source)
    if _URL.match(source):
        raise DataError(f"--source {source!r} is refused: expected a folder, or {', '.join(SCHEMES)}, never a command")
    folder = Path(source.removeprefix("file://").removeprefix("file:")).expanduser().absolute()
    if str(folder).encode(errors="ignore") != os.fsencode(folder):
        raise DataError(
            f"--source {str(folder)!r} has bytes that are not UTF-8, so that no manifest could name it. Rename it, or "
            "name a link that leads there (ln -s)."
        )
    if not folder.exists():
        raise DataError(f"{folder} is not there. --source names the folder that the original images are in.")
    return folder


def _open_arrays(info: ImageSetInfo, data_dir: Path, source: Path | None) -> Original:
    """CIFAR or SVHN: arrays of pixels, from ``source`` or else from wherever ``fetch`` gets them."""
    path = fetch.ensure(info.name, data_dir, source)
    arrays = storage.open_arrays(path)
    classes = info.class_names or tuple(str(label) for label in range(info.num_classes))
    samples: dict[Split, OriginalSamples] = {}
    for split in SPLITS:
        images, labels = arrays[f"{split}_images"], np.asarray(arrays[f"{split}_labels"])
        names = [f"{split}/{classes[label]}/{index:06d}.png" for index, label in enumerate(labels.tolist())]
        samples[split] = OriginalSamples(names, labels, [path], np.stack([*place_rows(images).values()], axis=1))
    return Original(classes, str(source or path), samples, is_checked=True)


def _open(source: Path, info: ImageSetInfo | None, chosen: list[Path] | None, options: Options) -> Original:
    """The samples of a folder in any form, or of the form that one of its files, if it was named, belongs to."""
    num_kept = info.num_classes if info is not None and info.subset_of else None
    folder, file = (source, None) if chosen or source.is_dir() else (source.parent, source.name)
    root = folders.find_root(folder) if file is None and isinstance(folder, Path) else None
    has_tars = (folder / ilsvrc.TRAIN_TAR).exists()
    if file in ilsvrc.FILES or (file is None and has_tars and not (root and folders.find_test(root))):
        return ilsvrc.open_tars(folder, num_kept)
    # labels may go up to those of a set that this one is part of
    num_labels = CATALOG[info.subset_of or info.name].num_classes if info else None
    may_be_files = chosen or root is None or not folders.list_folders(root / "train")[0]
    options = options._replace(num_classes=num_labels, num_kept=num_kept)
    if may_be_files and (listed := _open_container(folder, source, chosen, options)):
        return listed
    if root is not None:
        original = folders.open_folders(folder, root, num_kept)
        if has_tars:
            original.notes.append(f"took the folders in {root}; --source {folder / ilsvrc.TRAIN_TAR} takes the tars")
        return original
    expected = (
        "train/ and val/ with a folder for each class (or the same in zips), or MDS, or *train* and *val* as "
        "shards (.tar), .parquet or .beton"
    )
    if info is not None and "imagenet" in (info.name, info.subset_of):
        expected += f", or {ilsvrc.TRAIN_TAR}, {ilsvrc.VAL_TAR} and {ilsvrc.DEVKIT}.tar.gz"
    if info is not None:
        expected += "".join(f", or {' and '.join(form.names)}" for form in list_forms(info))
    if is_address(str(source)):
        expected = "*train* and *val* as shards (.tar), .parquet or zips; class folders are not read behind an address"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    there = "a file" if file else list_some(names) or "nothing"
    raise DataError(f"{source} has no image set: found {there}; expected {expected}.")


def _open_container(folder: Path, source: Path, chosen: list[Path] | None, options: Options) -> Original | None:
    """The samples of the files that are tables of offsets, if there are any in the folder, or the named one is one."""
    found = {one: containers.find_files(folder, chosen, *one) for one in (*_CONTAINERS, _SHARDS)}
    found[_ZIPS] = zips.find_zips(folder, source, chosen)
    of_kind = {one: {path for paths in files.values() for path in paths} for one, files in found.items()}
    kinds = [one for one, paths in of_kind.items() if (source in paths if source.is_file() else paths)]
    if len(kinds) > 1:
        raise DataError(f"{folder} has sets as {list_some([one[0] for one in kinds])}. Name a file: --source FILE.")
    if not kinds:
        return None
    files = found[kinds[0]]
    if kinds == [_ZIPS]:
        original = zips.open_zips(folder, files, options.num_kept)
    else:
        list_file = _CONTAINERS.get(kinds[0]) or shards.make_lister(files, options.label_key)
        original = containers.open_listed(folder, files, list_file, options)
    if source.is_file() and (num_files := len(of_kind[kinds[0]])) > 1:
        original.notes.append(f"all {num_files} {kinds[0][0]} files in {folder} are read; a pattern chooses among them")
    return original


def _compare(original: Original, info: ImageSetInfo) -> list[str]:
    """The differences from the catalog in the number of images, a line each; DataError for one in that of classes."""
    if len(original.classes) != info.num_classes:
        raise DataError(
            f"{original.source} has {len(original.classes)} classes, expected {info.num_classes} for {info.name}. "
            "An image set of your own needs a name of its own: --dataset NAME."
        )
    notes = []
    for split, samples in original.samples.items():
        found, expected = len(samples.labels), info.num_train if split == "train" else info.num_test
        if found != expected and not info.subset_of:  # nobody's part of a set has to be complete
            last = samples.shared_files[-1].name if samples.shared_files else ""
            behind = f": are there files behind {last}?" if found < expected and re.search(r"\d", last) else ""
            notes.append(f"warning: found {found:,} {split} images, {info.title} has {expected:,}{behind}")
    return notes
