"""An image set in any form it is distributed in -> a prepared folder with index and manifest.

Everything is made in a working folder beside the final one, which gets its name once it is complete.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
from importlib.metadata import version
from typing import Any

import numpy as np
from rich.console import Console

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
from imagesets.originals.samples import Original
from imagesets.prepare.journal import Journal
from imagesets.prepare.progress import show_status
from imagesets.prepare.request import Prepared, PrepareRequest
from imagesets.prepare.work import convert_splits
from suite.errors import DataError
from suite.spec import StorageFormat


def prepare(request: PrepareRequest, console: Console) -> Prepared:
    """Convert an image set, or go on with it where an earlier process was killed.

    Of several processes that do this at once, one works and the others wait for it.

    Raises:
        DataError: a source that is not there, broken or not what it should be; a corrupt image; a full disk; a folder
            that has something else in it.
    """
    find_format(request.storage_format).check_writer()  # before hours of work, not after
    with show_status(f"listing {request.source}", console) if request.source else contextlib.nullcontext():
        original = open_original(request.dataset, request.source, request.out)
    for note in original.notes:
        console.print(note)
    target = request.target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target.with_name(f".{target.name}.lock"), console):
            if (target / MANIFEST).exists():
                return _find_same(request, original)
            return _convert(request, original, console)
    except OSError as error:
        raise disk_error(target, error) from error


def _find_same(request: PrepareRequest, original: Original) -> Prepared:
    """The set that is there already, if it is the one that is asked for."""
    manifest = read_manifest(request.target)
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
    if original.source != str(request.target) and found != wanted:
        differing = ", ".join(
            "other images in --source" if key == "images" else f"{key} {found[key]}"
            for key in found
            if found[key] != wanted[key]
        )
        raise DataError(
            f"{request.target} was made with other settings ({differing}). Delete it, or choose another folder: --out."
        )
    shutil.rmtree(partial_folder(request.target), ignore_errors=True)
    if request.shards_url not in (None, manifest.shards_url):
        manifest = manifest.model_copy(update={"shards_url": request.shards_url})
        write_manifest(request.target, manifest)
    return Prepared(request.target, manifest, was_there=True)


def _convert(request: PrepareRequest, original: Original, console: Console) -> Prepared:
    target, journal = request.target, Journal(partial_folder(request.target))
    output = Output(target, journal.ready, request.changes_images)
    sink = find_format(request.storage_format).make_sink(original, output)
    if not sink.in_place and target.is_dir() and any(target.iterdir()):
        raise DataError(f"{target} has files but no {MANIFEST}: it was not made here. Move it away or choose --out.")
    if changed := journal.open(_settings(request, original)):
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
        root=sink.root,
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        made_by=_describe_tools(request.storage_format),
    )
    write_manifest(folder, manifest)
    if not sink.in_place:
        journal.ready.rename(target)
    shutil.rmtree(journal.folder, ignore_errors=True)
    return Prepared(target, manifest, skipped)


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
