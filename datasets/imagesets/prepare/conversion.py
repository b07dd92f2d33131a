"""An image set in any form it is distributed in -> a prepared folder with index and manifest.

Everything is made in a working folder beside the final one, which gets its name once it is complete.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from imagesets.catalog import CATALOG
from imagesets.fetch import lock
from imagesets.fetch.storage import disk_error
from imagesets.formats import find_format
from imagesets.formats.portions import Collected
from imagesets.formats.sinks import Output
from imagesets.manifest import (
    INDEX,
    MANIFEST,
    Manifest,
    Split,
    describe_file,
    partial_folder,
    read_manifest,
    write_index,
    write_manifest,
)
from imagesets.originals.opening import open_original
from imagesets.originals.samples import Original, OriginalSamples, PixelSamples
from imagesets.originals.treatment import decode_any
from imagesets.prepare.journal import Journal
from imagesets.prepare.progress import show_status
from imagesets.prepare.request import Prepared, PrepareRequest
from imagesets.prepare.work import convert_splits
from imagesets.prepared import check_order, other_set
from suite.errors import DataError
from suite.spec import StorageFormat


def prepare(request: PrepareRequest, console: Console) -> Prepared:
    """Convert an image set, or go on with it where an earlier process was killed.

    Of several processes that do this at once, one works and the others wait for it.

    Raises:
        DataError: a source that is not there, broken or not what it should be; a corrupt image; a full disk; a folder
            that has something else in it, or can have no other in its place.
    """
    find_format(request.storage_format).check_writer()  # before hours of work, not after
    target = _find_target(request)
    with show_status(f"listing {request.source}", console) if request.source else contextlib.nullcontext():
        original = open_original(request.dataset, request.source, request.out)
        check_order(
            request.dataset, original.source, original.classes, {s: one.labels for s, one in original.samples.items()}
        )
        stamps = _stamps(original)
    for note in original.notes:
        console.print(note)
    if found := _find_same(request, target, original, stamps):  # without a lock: it may lie where nobody can write
        return found
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target.with_name(f".{target.name}.lock"), console):
            return _find_same(request, target, original, stamps) or _convert(request, target, original, stamps, console)
    except OSError as error:
        raise disk_error(target, error) from error


def _find_target(request: PrepareRequest) -> Path:
    """The folder that is to be made: behind a link, the one that it leads to.

    Raises:
        DataError: if no folder can take its place.
    """
    target = Path(os.path.realpath(request.target))
    what = "a link to itself" if target.is_symlink() else "a place where a disk is mounted" if target.is_mount() else ""
    if what or (target.exists() and not target.is_dir()):
        raise DataError(
            f"{target} is {what or 'no folder'}: no prepared set can take its place. Move it away, make it a link to "
            "a folder that does not exist yet, or choose --out."
        )
    return target


def _find_same(request: PrepareRequest, target: Path, original: Original, stamps: dict[Split, str]) -> Prepared | None:
    """The set that is there already, if it is the one that is asked for; None where there is none.

    Shards that were indexed where they lie, and have changed since, count as none: only their index is made again.
    """
    if not (target / MANIFEST).exists():
        return None
    is_in_place = Path(original.source).resolve() == target
    try:
        manifest = read_manifest(target)
    except DataError:
        if is_in_place:
            return None
        raise
    has_changed = manifest.stamps not in ({}, stamps)
    if is_in_place and has_changed:
        return None
    found: dict[str, Any] = {
        "--source": manifest.source,
        "--max-side": manifest.max_side,
        "--quality": manifest.quality,
    }
    wanted: dict[str, Any] = {
        "--source": original.source,
        "--max-side": request.max_side,
        "--quality": request.stored_quality,
    }
    if manifest.fingerprints:
        found["images"], wanted["images"] = manifest.fingerprints, _fingerprints(original)
    if not is_in_place and found != wanted:
        differing = ", ".join(
            "other images in --source" if key == "images" else f"{key} {found[key]}"
            for key in found
            if found[key] != wanted[key]
        )
        raise DataError(
            f"{request.target} was made with other settings ({differing}). Delete it, or choose another folder: --out."
        )
    if has_changed:
        raise DataError(
            f"{request.target} was made of images that have changed since: {_newest(original)} in {original.source} is "
            f"the newest. Delete {request.target}, and the same command prepares the set again."
        )
    shutil.rmtree(partial_folder(target), ignore_errors=True)
    if request.shards_url not in (None, manifest.shards_url):
        manifest = manifest.model_copy(update={"shards_url": request.shards_url})
        write_manifest(target, manifest)
    return Prepared(request.target, manifest, was_there=True)


def _convert(
    request: PrepareRequest, target: Path, original: Original, stamps: dict[Split, str], console: Console
) -> Prepared:
    journal = Journal(partial_folder(target))
    output = Output(target, journal.ready, request.changes_images)
    sink = find_format(request.storage_format).make_sink(original, output)
    if not sink.in_place and target.is_dir() and any(target.iterdir()):
        raise DataError(f"{target} has files but no {MANIFEST}: it was not made here. Move it away or choose --out.")
    _check_pixels(request.dataset, original, console)
    if changed := journal.open(_settings(request, original) | {"stamps": stamps}):
        console.print(f"starting over: what was half made in {journal.folder} had other settings ({changed})")
    splits = convert_splits(request, original, sink, journal, console)
    _check_classes(original, splits)
    files = sink.finish(splits)
    folder = target if sink.in_place else journal.ready
    write_index(folder, {split: collected.index for split, collected in splits.items()})
    files[INDEX] = describe_file(folder / INDEX)
    skipped = tuple(pair for collected in splits.values() for pair in collected.skipped)
    manifest = Manifest(
        dataset=request.dataset,
        format=request.storage_format,
        classes=original.classes,
        num_images={split: len(collected.kept) for split, collected in splits.items()},
        num_skipped=len(skipped),
        files=files,
        source=original.source,
        max_side=request.max_side,
        quality=request.stored_quality,
        shards_url=request.shards_url,
        fingerprints=_fingerprints(original),
        stamps=stamps,
        root=sink.root,
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        made_by=_describe_tools(request.storage_format),
    )
    write_manifest(folder, manifest)
    if not sink.in_place:
        journal.ready.rename(target)
    shutil.rmtree(journal.folder, ignore_errors=True)
    return Prepared(request.target, manifest, skipped)


def _check_pixels(dataset: str, original: Original, console: Console) -> None:
    """Hold the images against the catalog, where it knows them, which the labels alone do not tell.

    Raises:
        DataError: if they are others, or in another order.
    """
    info = CATALOG.get(dataset)
    for split, samples in original.samples.items():
        if info is None or info.sha256 is None or isinstance(samples, PixelSamples):
            continue  # arrays were held against it when they were opened
        digest = hashlib.sha256()
        with show_status(f"comparing {split} images with {info.title}", console), contextlib.suppress(ValueError):
            for index in range(len(samples)):
                data = samples.byte_range(index).read()
                digest.update(decode_any(data) if isinstance(data, bytes) else data)
        if digest.hexdigest() != info.sha256[f"{split}_images"]:
            raise other_set(info, original.source, f"its {split} images are others, or in another order")


def _stamps(original: Original) -> dict[Split, str]:
    """A digest of the sizes and times of the files of each split, to notice that one was replaced."""
    stamps: dict[Split, str] = {}
    for split, samples in original.samples.items():
        paths = () if isinstance(samples, PixelSamples) else _paths(samples)  # arrays have checksums
        states = [(state.st_size, state.st_mtime_ns) for state in map(os.stat, paths)]
        stamps[split] = hashlib.sha256(repr(states).encode()).hexdigest()
    return stamps


def _paths(samples: OriginalSamples) -> list[str]:
    return list(dict.fromkeys(samples.byte_range(index).path for index in range(len(samples))))


def _newest(original: Original) -> str:
    """The file that was changed last."""
    paths = [path for samples in original.samples.values() for path in _paths(samples)]
    return os.path.relpath(max(paths, key=lambda path: os.stat(path).st_mtime_ns), original.source)


def _fingerprints(original: Original) -> dict[Split, str]:
    return {split: samples.fingerprint() for split, samples in original.samples.items()}


def _settings(request: PrepareRequest, original: Original) -> dict[str, Any]:
    """All that the half-made files depend on."""
    return {
        "source": original.source,
        "samples": _fingerprints(original),
        "classes": len(original.classes),
        "max_side": request.max_side,
        "quality": request.quality,
        "samples_per_shard": request.samples_per_shard,
    }


def _check_classes(original: Original, splits: dict[Split, Collected]) -> None:
    """A class whose images were all skipped is an error; one that never had any was one before."""
    for split, collected in splits.items():
        counts = np.bincount(collected.index.labels, minlength=len(original.classes))
        for label in np.unique(original.samples[split].labels):
            if counts[label] == 0:
                raise DataError(
                    f"all {split} images of class {original.classes[label]!r} in {original.source} are corrupt: "
                    "none is left. Replace them, or remove the class."
                )


def _describe_tools(storage_format: StorageFormat) -> str:
    packages = ["convolutional-prior-suite", "numpy", "pillow", *find_format(storage_format).packages]
    return ", ".join(f"{name} {version(name)}" for name in packages)
