"""A store as training leaves it, to be packed, altered and packed again."""

import hashlib
import json
import tarfile

import numpy as np
import pytest

from launchers.grid import main as grid
from leaderboards.boards.board import make_leaderboard
from leaderboards.packed_records import pack_records
from suite.base.reading import seal, unseal
from suite.papers import get_suite
from suite.store.frozen_plan import read_plan
from suite.store.predictions import FIRST_WITH_PREDICTIONS, Predictions, write_predictions
from suite.store.run_directory import RunDirectory

EXPERIMENT = get_suite("sample_efficiency").profile("laptop").experiments()[0]


def write_right(run, num_right, num_images=10_000):
    """Write predictions of which so many are right; gives what the result says of them."""
    predicted = np.zeros(num_images, dtype=np.int16)
    predicted[num_right:] = 1
    digest = write_predictions(run, Predictions(predicted, np.zeros_like(predicted)))
    return {"top1_percent": num_right * 100 / num_images, "predictions_sha256": digest}


@pytest.fixture
def store(finish_in, tmp_path):
    """Two seeds of one configuration, trained under a frozen plan, with every record."""
    store = tmp_path / "store"
    freeze = ["--seeds", "8-9", "--freeze", str(tmp_path / "plan.json"), "--runs", str(store)]
    assert grid(["--suite", "sample_efficiency", *freeze]) == 0
    digest = read_plan(store, "sample_efficiency", "laptop").sha256
    for seed in (8, 9):
        experiment = EXPERIMENT.with_seed(seed)
        run = RunDirectory.of(store, experiment)
        run.create(experiment)
        found = write_right(run, 4000)
        finish_in(
            store,
            experiment,
            found.pop("top1_percent"),
            plan_sha256=digest,
            format_version=FIRST_WITH_PREDICTIONS,
            **found,
        )
        run.append_metrics({"step": 1, "top1_percent": 40.0, "test_loss": 1.0})
        record = {"device": "cpu", "commit": "0" * 40, "packages": {"torch": "2.0"}}
        run.environment_path.write_text(json.dumps(record))
    return store


@pytest.fixture
def run(store):
    return RunDirectory.of(store, EXPERIMENT.with_seed(8))


def alter(path, **fields):
    """Change fields of a record, and seal it again where it was sealed, as who knows how can."""
    before = path.read_bytes()
    plain = unseal(before)
    after = json.dumps(json.loads(plain) | fields, indent=1).encode()
    path.write_bytes(after if plain == before else seal(after))


def pack(store, path):
    packed = pack_records(make_leaderboard(get_suite("sample_efficiency"), "laptop", store))
    path.write_bytes(packed.content)
    return path, hashlib.sha256(packed.content).hexdigest()


def pack_folder(store, path):
    """Pack a store as whoever has altered it would, without a look at what it holds."""
    with tarfile.open(path, "w:xz") as archive:
        for name in ("experiments", "challengers", "plans"):
            for file in sorted((store / name).rglob("*.*")):
                archive.add(file, file.relative_to(store), recursive=False)
    return path
