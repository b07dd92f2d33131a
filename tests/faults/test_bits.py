"""Single flipped bits in what is kept: checkpoints, weights, results, prepared images. Each has to be noticed."""

import functools
from random import Random

import pytest
from campaign import Fault, Tally
from subjects import (
    REFUSALS,
    Subject,
    checked_images,
    checkpoint,
    fetched_images,
    images_in_training,
    maps,
    of_run,
    weights,
)

ROUND = 25  # bits


def flip(make, num, tally, draw, folder):
    """Flip so many bits one after the other, each put right again after the reader has looked.

    A reader that notices nothing and reads something else has lost the bit; one
    that reads the same has lost nothing.
    """
    subject = make(folder)
    expected = subject.read()
    for _ in range(num):
        path = draw.choice(subject.paths)
        place = draw.randrange(8 * path.stat().st_size)
        flip_bit(path, place)
        look(subject.read, expected, f"bit {place} of {path.name}", tally)
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


FILES = {
    "checkpoint": (checkpoint, 60),
    "weights of a finished run": (functools.partial(weights, True), 20),
    "result": (functools.partial(of_run, "result"), 40),
    "attention maps": (functools.partial(maps, True), 20),
    "images in memory": (functools.partial(checked_images, "memory"), 12),
    "images in shards": (functools.partial(checked_images, "webdataset"), 12),
    "images in a folder": (functools.partial(checked_images, "folder"), 12),
    "images in memory, as trained on": (functools.partial(images_in_training, "memory"), 12),
    "images in shards, as trained on": (functools.partial(images_in_training, "webdataset"), 12),
    "images in a folder, as trained on": (functools.partial(images_in_training, "folder"), 12),
    "images that were fetched": (fetched_images, 12),
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
    subject = Subject(lambda: read(path.read_bytes().decode("latin-1")), [path])
    flip(lambda folder: subject, 50, tally, Random(0), path.parent)
    return tally.counts


def test_a_flipped_bit_that_gives_another_number_or_an_error_that_is_not_ours_is_lost(tmp_path):
    found = flip_digits(tmp_path / "file", int)
    assert found["injected"] == found["lost"] == 50
    assert 0 < found["noticed"] < 50


def test_a_flipped_bit_that_changes_nothing_is_not_lost(tmp_path):
    found = flip_digits(tmp_path / "file", lambda text: text[0])
    assert (found["injected"], found["noticed"]) == (50, 0)
    assert found["lost"] == 50 - found["equal"] > 0
