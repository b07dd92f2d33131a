"""Single flipped bits in what is kept: checkpoints, weights, results, prepared images. Each has to be noticed."""

import functools
import io
import shutil
from pathlib import Path
from random import Random

import pytest
from campaign import Fault, Tally
from commits import make_checkpoint
from rich.console import Console
from subjects import REFUSALS
from whole_files import (
    EXPERIMENT,
    NUM_CLASSES,
    images_of,
    make_begun_run,
    make_finished_run,
    make_result,
    prepare_images,
    write_maps,
)

from imagesets.catalog import CATALOG
from imagesets.fetch import ensure, storage
from imagesets.opening import open_splits
from imagesets.prepare.check import check_prepared
from leaderboards.figures.parts.recorded import read_recorded
from suite.training.checkpoint.manifest import CheckpointManifest
from suite.training.start import trained_network

ROUND = 25  # bits


def flip(make, num, tally, draw, folder):
    """Flip so many bits one after the other, each put right again after the reader has looked.

    `make` gives a reader and the files. A reader that notices nothing and reads something else has lost the bit; one
    that reads the same has lost nothing.
    """
    read, paths = make(folder)
    expected = read()
    for _ in range(num):
        path = draw.choice(paths)
        place = draw.randrange(8 * path.stat().st_size)
        flip_bit(path, place)
        look(read, expected, f"bit {place} of {path.name}", tally)
        flip_bit(path, place)


def flip_bit(path, place):
    with path.open("r+b") as file:
        file.seek(place // 8)
        byte = file.read(1)[0]
        file.seek(place // 8)
        file.write(bytes([byte ^ 1 << place % 8]))


def look(read, expected, what, tally):
    try:
        found = read()
    except REFUSALS:
        tally.add(noticed=True)
    except Exception as error:
        tally.add(f"{what}: {error!r}", noticed=True)
    else:
        if found == expected:
            tally.add(equal=True)
        else:
            tally.add(f"{what} is not noticed")


def checkpoint(folder):
    newest = make_checkpoint(folder)
    return lambda: bool(CheckpointManifest.read(newest)), sorted(newest.iterdir())


def weights(folder):
    run = make_finished_run(folder)

    def read():
        weights = trained_network(run, EXPERIMENT, NUM_CLASSES).state_dict()
        return {name: tensor.tolist() for name, tensor in weights.items()}

    return read, [run.weights_path]


def result(folder):
    run = make_finished_run(folder)
    return run.read_result, [run.result_path]


def maps(folder):
    run = make_begun_run(folder)
    run.write_result(make_result().model_copy(update={"maps_sha256": write_maps(run)}))

    def read():
        recorded = read_recorded(run, ["central"])
        return recorded and {name: array.tolist() for name, array in recorded.arrays.items()}

    return read, [run.maps_path]


def checked(storage_format, folder):
    """Images as `--check` reads them."""
    prepared = prepare_images(folder, storage_format)
    return lambda: bool(check_prepared(prepared, Console(file=io.StringIO()))), images_of(prepared)


def trained_on(storage_format, folder):
    """All images as a training gets them, without `--check`."""
    prepared = prepare_images(folder, storage_format)

    def read():
        splits = open_splits(CATALOG["cifar10_sample"], storage_format, folder)
        return {name: (split.labels.tolist(), pixels(split)) for name, split in splits.items()}

    return read, images_of(prepared)


def pixels(stored):
    return [stored.whole(index).tobytes() for index in range(len(stored))]


def fetched(folder):
    """Arrays that were fetched, as a training gets them."""
    path = Path(shutil.copy(ensure("cifar10_sample"), folder))

    def read():
        storage.check_file(path, CATALOG["cifar10_sample"])
        return {name: array.tobytes() for name, array in storage.open_arrays(path).items()}

    return read, [path]


FILES = {
    "checkpoint": (checkpoint, 60),
    "weights of a finished run": (weights, 20),
    "result": (result, 40),
    "attention maps": (maps, 20),
    "images in memory": (functools.partial(checked, "memory"), 12),
    "images in shards": (functools.partial(checked, "webdataset"), 12),
    "images in a folder": (functools.partial(checked, "folder"), 12),
    "images in memory, as trained on": (functools.partial(trained_on, "memory"), 12),
    "images in shards, as trained on": (functools.partial(trained_on, "webdataset"), 12),
    "images in a folder, as trained on": (functools.partial(trained_on, "folder"), 12),
    "images that were fetched": (fetched, 12),
}
FAULTS = [
    Fault(f"flipped bit, {name}", functools.partial(flip, make, ROUND), rounds, in_tests=1)
    for name, (make, rounds) in FILES.items()
]


@pytest.mark.campaign
def test_a_flipped_bit_is_refused_or_changes_nothing(play):
    assert play()["injected"] == ROUND


def flip_digits(path, read):
    path.write_text("12345")
    tally = Tally()
    flip(lambda folder: (lambda: read(path.read_bytes().decode("latin-1")), [path]), 50, tally, Random(0), path.parent)
    return tally.counts


def test_a_flipped_bit_that_gives_another_number_or_an_error_that_is_not_ours_is_lost(tmp_path):
    found = flip_digits(tmp_path / "file", int)
    assert found["injected"] == found["lost"] == 50
    assert 0 < found["noticed"] < 50


def test_a_flipped_bit_that_changes_nothing_is_not_lost(tmp_path):
    found = flip_digits(tmp_path / "file", lambda text: text[0])
    assert (found["injected"], found["noticed"]) == (50, 0)
    assert found["lost"] == 50 - found["equal"] > 0
