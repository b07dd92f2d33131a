"""An index that was damaged, or that nobody's ``prepare`` has written."""

import contextlib
import json
import random

import numpy as np
import pytest
import safetensors.numpy

from imagesets.manifest import INDEX, MANIFEST, Index, read_index, read_manifest, write_index
from suite.base.errors import DataError

WHOLE = Index(
    np.arange(4), np.full((4, 2), 32, np.int32), Index.encode_names(["a", "b", "c", "d"]), {"shard": np.arange(4)}
)


def names_of(index):
    return [index.name(number) for number in range(len(index.labels))]


def test_a_whole_index_is_read_as_it_was_written(tmp_path):
    write_index(tmp_path, {"train": WHOLE})
    found = read_index(tmp_path, "train")
    assert (found.labels.tolist(), names_of(found)) == ([0, 1, 2, 3], ["a", "b", "c", "d"])
    assert (found.sizes.tolist(), found.places["shard"].tolist()) == ([[32, 32]] * 4, [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels", None),
        ("labels", np.arange(4.0)),
        ("labels", np.arange(4).reshape(2, 2)),
        ("labels", np.arange(5)),
        ("labels", -np.arange(4)),
        ("sizes", np.full((4, 3), 32, np.int32)),
        ("sizes", np.zeros((4, 2), np.int32)),
        ("names", np.frombuffer(b"a\n\xff\nc\nd", np.uint8)),
        ("place.shard", np.arange(4) - 1),
        ("place.shard", np.array(7)),
    ],
)
def test_an_array_that_cannot_be_an_indexs_is_refused(tmp_path, name, array):
    write_index(tmp_path, {"train": WHOLE})
    arrays = safetensors.numpy.load_file(tmp_path / INDEX)
    del arrays[f"train.{name}"]
    safetensors.numpy.save_file(arrays if array is None else arrays | {f"train.{name}": array}, tmp_path / INDEX)
    with pytest.raises(DataError, match=r"index\.safetensors .*Prepare the image set again"):
        read_index(tmp_path, "train")


def test_whatever_happens_to_an_indexs_bytes_it_is_read_or_named(tmp_path):
    write_index(tmp_path, {"train": WHOLE})
    whole, draw = (tmp_path / INDEX).read_bytes(), random.Random(0)
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(data))
            data[place : place + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 3))
        (tmp_path / INDEX).write_bytes(data)
        with contextlib.suppress(DataError):
            assert len(names_of(read_index(tmp_path, "train"))) == 4


def test_a_manifest_whose_files_lead_out_of_its_folder_is_refused(run):
    folder = run().folder
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"]["train-0/../../../../outside.tar"] = manifest["files"]["train-000000.tar"]
    (folder / MANIFEST).write_text(json.dumps(manifest | {"shards_url": "http://127.0.0.1:1"}))
    with pytest.raises(DataError, match=r"outside\.tar', expected one part of a path"):
        read_manifest(folder)
