"""Single flipped bits in what is kept: checkpoints, weights, results, prepared images. Each has to be noticed."""

from __future__ import annotations

import functools
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from fault_commits import commit_checkpoint, run_alone
from fault_counts import Counts, Fault
from fault_records import (
    EXPERIMENT,
    NUM_CLASSES,
    make_begun_run,
    make_finished_run,
    make_result,
    prepare_images,
    write_maps,
)
from rich.console import Console

from imagesets.catalog import CATALOG
from imagesets.fetch import ensure, storage
from imagesets.formats.stored import StoredImages
from imagesets.prepare.conversion import check_prepared
from imagesets.stored_split import open_splits
from leaderboards.figures.parts.recorded import read_recorded
from suite.base.errors import SuiteError
from suite.spec.resources import StorageFormat
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint_files import CheckpointManifest, DamageError
from suite.training.start import trained_network

_ROUND = 25  # bits
_WORDS = 300  # characters of a story

Reader = Callable[[], object]
Whole = Callable[[Path], tuple[Reader, Sequence[Path]]]  # makes files in a folder; how they are read, and which


def flip(make: Whole, num: int, draw: Random, folder: Path) -> Counts:
    """Flip bits one after the other, each put right again after the reader has looked.

    A reader that notices nothing and reads something else has lost it; one that reads the same has lost nothing.

    Args:
        make: makes the files.
        num: bits.
        draw: says which.
        folder: for the files.
    """
    read, paths = make(folder)
    expected, total = read(), Counts()
    for _ in range(num):
        path = draw.choice(paths)
        place = draw.randrange(8 * path.stat().st_size)
        _flip_bit(path, place)
        total += _look(read, expected, f"bit {place} of {path.name}")
        _flip_bit(path, place)
    return total


def _flip_bit(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place // 8)
        byte = file.read(1)[0]
        file.seek(place // 8)
        file.write(bytes([byte ^ 1 << place % 8]))


def _look(read: Reader, expected: object, what: str) -> Counts:
    try:
        found = read()
    except (SuiteError, DamageError):
        return Counts(1, noticed=1)
    except Exception as error:
        return Counts(1, noticed=1, lost=1, stories=(f"{what}: {error!r}"[:_WORDS],))
    if found == expected:
        return Counts(1, equal=1)
    return Counts(1, lost=1, stories=(f"{what} is not noticed",))


def _checkpoint(folder: Path) -> tuple[Reader, Sequence[Path]]:
    if not run_alone(commit_checkpoint, folder):
        raise RuntimeError((folder / "log.txt").read_text(encoding="utf-8"))
    newest = RunDirectory(folder).checkpoint_at(3)
    return lambda: bool(CheckpointManifest.read(newest)), sorted(newest.iterdir())


def _weights(folder: Path) -> tuple[Reader, Sequence[Path]]:
    run = make_finished_run(folder)

    def read() -> object:
        weights = trained_network(run, EXPERIMENT, NUM_CLASSES).state_dict()
        return [(name, weights[name].tolist()) for name in sorted(weights)]

    return read, [run.weights_path]


def _result(folder: Path) -> tuple[Reader, Sequence[Path]]:
    run = make_finished_run(folder)
    return run.read_result, [run.result_path]


def _maps(folder: Path) -> tuple[Reader, Sequence[Path]]:
    run = make_begun_run(folder)
    run.write_result(make_result().model_copy(update={"maps_sha256": write_maps(run)}))

    def read() -> object:
        recorded = read_recorded(run, ["central"])
        return recorded and {name: array.tolist() for name, array in recorded.arrays.items()}

    return read, [run.maps_path]


def _images(storage_format: str, folder: Path) -> tuple[Reader, Sequence[Path]]:
    prepared = prepare_images(folder, storage_format)
    console = Console(file=io.StringIO())
    paths = sorted(path for path in prepared.rglob("*") if path.is_file() and path.name != "manifest.json")
    return lambda: bool(check_prepared(prepared, console)), paths


def _images_in_training(storage_format: StorageFormat, folder: Path) -> tuple[Reader, Sequence[Path]]:
    """All images as a training gets them, without ``--check``."""
    prepared, info = prepare_images(folder, storage_format), CATALOG["cifar10_sample"]

    def read() -> object:
        splits = open_splits(info, storage_format, folder)
        return {split: (stored.labels.tolist(), _pixels(stored)) for split, stored in splits.items()}

    return read, sorted(path for path in prepared.rglob("*") if path.is_file() and path.name != "manifest.json")


def _pixels(stored: StoredImages) -> list[bytes]:
    return [stored.whole(index).tobytes() for index in range(len(stored))]


def _ready_file(folder: Path) -> tuple[Reader, Sequence[Path]]:
    """Arrays that were fetched, as a training gets them."""
    path = Path(shutil.copy(ensure("cifar10_sample"), folder))

    def read() -> object:
        storage.check_file(path, CATALOG["cifar10_sample"])
        return {name: array.tobytes() for name, array in storage.open_arrays(path).items()}

    return read, [path]


def faults() -> list[Fault]:
    """List all that is read, 25 bits a round: 2,000 of checkpoints and weights, 2,100 of images, 1,500 of the rest."""
    files: dict[str, tuple[Whole, int]] = {
        "checkpoint": (_checkpoint, 60),
        "weights of a finished run": (_weights, 20),
        "result": (_result, 40),
        "attention maps": (_maps, 20),
        "images in memory": (functools.partial(_images, "memory"), 12),
        "images in shards": (functools.partial(_images, "webdataset"), 12),
        "images in a folder": (functools.partial(_images, "folder"), 12),
        "images in memory, as trained on": (functools.partial(_images_in_training, "memory"), 12),
        "images in shards, as trained on": (functools.partial(_images_in_training, "webdataset"), 12),
        "images in a folder, as trained on": (functools.partial(_images_in_training, "folder"), 12),
        "images that were fetched": (_ready_file, 12),
    }
    return [
        Fault(f"flipped bit, {name}", functools.partial(flip, make, _ROUND), rounds, rounds_in_tests=1)
        for name, (make, rounds) in files.items()
    ]
