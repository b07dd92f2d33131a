"""An image set in any form it is distributed in -> a prepared folder with index and manifest.

Everything is made in a working folder beside the final one, which gets its name once it is complete.
"""

import contextlib
import datetime
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from imagesets import manifest as manifests
from imagesets.catalog import CATALOG
from imagesets.fetch import lock
from imagesets.fetch.storage import naming_disk_errors
from imagesets.formats import find_format
from imagesets.formats.in_place import find_root, find_target
from imagesets.formats.sinks import Collected, Output
from imagesets.originals.containers import Options
from imagesets.originals.detect import open_original
from imagesets.originals.samples import Original, list_some
from imagesets.originals.treatment import decode_any
from imagesets.prepare.settings import Prepared, PrepareSettings
from imagesets.prepare.work import Journal, convert_splits, map_in_order
from imagesets.prepared import check_order, other_set
from suite.base.errors import DataError
from suite.base.far.downloads import show_bar
from suite.base.far.remote import find, is_address


def prepare(settings: PrepareSettings, console: Console) -> Prepared:
    """Convert an image set, or go on with it where an earlier process was killed.

    Of several processes that do this at once, one works and the others wait for it. DataError for a source that is not
    there, broken or not what it should be; a corrupt image; a full disk; a folder that has something else in it.
    """
    with show_bar(f"listing {settings.source}", console) if settings.source else contextlib.nullcontext():
        apply = partial(map_in_order, num_workers=settings.num_workers)
        options = Options(label_key=settings.label_key, apply=apply)
        original = open_original(settings.dataset, settings.source, settings.out, options)
        inputs: dict[str, Any] = {  # all that the half-made files depend on
            "source": original.source,
            "samples": _fingerprints(original),
            "classes": [*original.classes],
            "max_side": settings.max_side,
            "quality": settings.quality,
            "samples_per_shard": settings.samples_per_shard,
            "notes": 2,  # the form of the journal's
        }
    target = Path(os.path.realpath(settings.target))  # behind a link, the folder that it leads to
    if settings.storage_format == "in_place" and not target.exists():
        target = find_target(original, settings.dataset) or target
    labels = {split: samples.labels for split, samples in original.samples.items()}
    original.notes += check_order(settings.dataset, original.source, original.classes, labels)
    for note in original.notes:
        console.print(note)
    if found := _find_same(settings, target, original, inputs):  # not locked: it may lie where nobody can write
        return _link(found, target)
    with naming_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target.with_name(f".{target.name}.lock"), console):
            found = _find_same(settings, target, original, inputs)
            return _link(found or _convert(settings, target, original, inputs, console), target)


def _link(prepared: Prepared, target: Path) -> Prepared:
    """Let the data folder lead to an index that lies beside its images, also where its link leads nowhere."""
    if not prepared.folder.exists():
        prepared.folder.unlink(missing_ok=True)
        prepared.folder.parent.mkdir(parents=True, exist_ok=True)
        prepared.folder.symlink_to(target)
    return prepared


def _find_same(settings: PrepareSettings, target: Path, original: Original, inputs: dict[str, Any]) -> Prepared | None:
    """The set that is there already, if it is the one that is asked for; None where there is none."""
    if not (target / manifests.MANIFEST).exists():
        return None
    is_source = Path(original.source).resolve() == target
    stale = f"{target / manifests.MANIFEST}, which indexes these shards," if is_source else target
    try:
        manifest = manifests.read_manifest(target)
    except DataError as error:
        raise DataError(f"{str(error).rpartition('. ')[0]}. Delete {stale} and prepare it again.") from error
    options = {
        "--source": (manifest.source, original.source),
        "--max-side": (manifest.max_side, settings.max_side),
        "--quality": (manifest.quality, settings.stored_quality),
    }
    if manifest.fingerprints == inputs["samples"]:
        del options["--source"]  # it was moved, or is named in another way
    differing = [f"{option} {found}" for option, (found, wanted) in options.items() if found != wanted]
    pairs = zip(manifest.classes, original.classes, strict=False)
    if renamed := [f"{old} (now {new})" for old, new in pairs if old != new]:
        differing.append(f"classes {list_some(renamed)}")
    if any(manifest.fingerprints.get(key, digest) != digest for key, digest in inputs["samples"].items()):
        differing.append("the images in --source have changed since" + _list_newer(original, target))
    if differing and (not is_source or manifest.source == original.source):
        other = "" if settings.storage_format == "in_place" else ", or choose another folder: --out"
        raise DataError(
            f"{target} was made with other settings ({', '.join(sorted(differing))}). Delete {stale} and run the same "
            f"command again{other}."
        )
    shutil.rmtree(manifests.partial_folder(target), ignore_errors=True)
    if settings.shards_url not in (None, manifest.shards_url):
        manifest = manifest.model_copy(shards_url=settings.shards_url)
        manifests.write_manifest(target, manifest)
    return Prepared(settings.target, manifest, was_there=True)


def _list_newer(original: Original, target: Path) -> str:
    """The images' files that were written after the set was made; none of them where they kept older times."""
    made, files = (target / manifests.MANIFEST).stat().st_mtime, map(Path, _list_files(original))
    newer = [str(path) for path in files if path.exists() and path.stat().st_mtime > made]
    return f": {list_some(newer)}" if newer else ""


def _convert(
    settings: PrepareSettings, target: Path, original: Original, inputs: dict[str, Any], console: Console
) -> Prepared:
    journal = Journal(manifests.partial_folder(target))
    output = Output(target, journal.ready, settings.changes_images)
    sink = find_format(settings.storage_format).make_sink(original, output)
    is_taken = any(target.iterdir()) or target.is_mount() if target.is_dir() else os.path.lexists(target)
    if is_taken:
        raise DataError(
            f"{target} is a file, a mounted disk, a link to itself, or has files but no {manifests.MANIFEST}: it was "
            "not made here. Move it away or choose --out; --in-place indexes images where they are."
        )
    _check_pixels(settings.dataset, original, console)
    if changed := journal.open(inputs):
        console.print(f"starting over: what was half made in {journal.folder} had other settings ({changed})")
    splits = convert_splits(settings, original, sink, journal, console)
    _check_classes(original, splits)
    files = sink.finish(splits)
    manifests.write_index(journal.ready, {split: collected.index for split, collected in splits.items()})
    files[manifests.INDEX] = manifests.describe_file(journal.ready / manifests.INDEX)
    packages = ("convolutional-prior-suite", "numpy", "pillow", *find_format(settings.storage_format).packages)
    skipped = tuple(pair for collected in splits.values() for pair in collected.skipped)
    manifest = manifests.Manifest(
        dataset=settings.dataset,
        format=settings.storage_format,
        classes=original.classes,
        num_images={split: len(collected.kept) for split, collected in splits.items()},
        num_skipped=len(skipped),
        files=files,
        source=original.source,
        max_side=settings.max_side,
        quality=settings.stored_quality,
        shards_url=settings.shards_url,
        fingerprints=inputs["samples"],
        root=sink.root,
        containers=sink.containers,
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        made_by=", ".join(f"{name} {version(name)}" for name in packages),
    )
    manifests.write_manifest(journal.ready, manifest)
    journal.ready.rename(target)
    shutil.rmtree(journal.folder, ignore_errors=True)
    return Prepared(settings.target, manifest, skipped)


def _check_pixels(dataset: str, original: Original, console: Console) -> None:
    """Raise DataError for other images than the catalog's, or of one class in another order, which no label tells."""
    info = CATALOG.get(dataset)
    for split, samples in original.samples.items():
        if info is None or info.sha256 is None or original.is_checked:
            continue
        digest = hashlib.sha256()
        with show_bar(f"comparing {split} images with {info.title}", console), contextlib.suppress(ValueError):
            for index in range(len(samples)):
                digest.update(decode_any(samples.byte_range(index).read()).data)
        if digest.hexdigest() != info.sha256[f"{split}_images"]:
            raise other_set(info, original.source, f"its {split} images are others, or in another order")


def _fingerprints(original: Original) -> dict[str, str]:
    """Digests by which a second call notices another listing, or by size and time a file that was replaced."""
    root = find_root(original)  # which may be moved, and reached in several ways
    states: list[tuple[str, int, int | str]] = []
    try:
        for path in _list_files(original):
            if is_address(path):
                states.append((path.removeprefix(root), find(path).size, find(path).version))
            else:
                state = os.stat(path)  # noqa: PTH116  # a million texts become no Path first
                states.append((path.removeprefix(root), state.st_size, state.st_mtime_ns))
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}. Make it readable, or drop it.") from error
    listings = {str(split): samples.fingerprint() for split, samples in original.samples.items()}
    return listings | {"states": hashlib.sha256(repr(states).encode()).hexdigest()}


def _list_files(original: Original) -> list[str]:
    """The files that the images are in, without those of arrays, which have checksums of their own."""
    every = () if original.is_checked else original.samples.values()
    return sorted({path for samples in every for path in samples.files()})


def _check_classes(original: Original, splits: dict[manifests.Split, Collected]) -> None:
    """A class whose images were all skipped is an error; one that never had any was one before."""
    for split, collected in splits.items():
        for label in np.setdiff1d(original.samples[split].labels, collected.index.labels):
            raise DataError(
                f"all {split} images of class {original.classes[label]!r} in {original.source} are corrupt: "
                "none is left. Replace them, or remove the class."
            )


def check_prepared(folder: Path, console: Console) -> tuple[manifests.Manifest, int]:
    """Hold every byte of a prepared set against its manifest; give it, and the number of files that were read, without
    shards that are kept elsewhere. DataError names the files that are not what the manifest says."""
    manifest = manifests.load_manifest(folder)
    files = manifest.all_files(folder)
    checks: list[tuple[Callable[..., object], Sequence[Any]]] = [(lambda one: manifests.check_file(*one), files)]
    manifests.check_file(folder / manifests.INDEX, manifest.files[manifests.INDEX])
    for split in manifests.SPLITS:
        index = manifests.read_index(folder, split)
        if "num_bytes" in index.places:  # images that are files of their own, which no manifest lists
            images = find_format(manifest.format).open(folder, split, index, manifest)
            checks.append((images.read, range(len(images))))
    with show_bar("checking files", console, sum(len(every) for _, every in checks)) as advance:

        def each() -> Iterator[Callable[[], object]]:
            for check, every in checks:
                for one in every:
                    yield partial(check, one)
                    advance(1)

        return manifest, manifests.check_all(each(), "files are not as they were")
