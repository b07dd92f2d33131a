"""Whole files of every kind that we read, for others to damage: a finished run, a submission, prepared images."""

import contextlib
import functools
import io
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from imagesets.prepare.__main__ import main as prepare
from launchers.slurm.submission_record import Submission, write_submission
from suite.base.files import sha256_of
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.attempts import record_end, record_start
from suite.store.heartbeat import Heartbeat
from suite.store.results import PROTOCOL_VERSION, RESULT_FORMAT, Failure, Result
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint import save_weights

OPTIONS = {"dim": 18, "depth": 1}
EXPERIMENT = Experiment(model="deit_micro", model_options=OPTIONS, dataset="cifar10", image_size=32, recipe=DEIT_LAPTOP)
MADE = tempfile.TemporaryDirectory()  # what takes long to make, and is the same each time


def make_result(weights_sha256=""):
    """A result as a run of EXPERIMENT could have left it."""
    num_steps = EXPERIMENT.num_steps(50_000)
    accuracy = {"top1_percent": 40.25, "top5_percent": 80.5, "test_loss": 1.53125, "best_top1_percent": 41.0}
    counts = {"num_parameters": 7, "num_train_images": 50_000, "num_test_images": 10_000, "num_steps": num_steps}
    speed = {"images_seen": num_steps * DEIT_LAPTOP.batch_size, "train_s": 1.5, "images_per_s": 640.0}
    where = {"device": "a device", "num_ranks": 1, "threads_per_rank": 1, "num_attempts": 1}
    origin = {"protocol_version": PROTOCOL_VERSION, "commit": "unknown", "finished_at": "2026-01-01T00:00:00+00:00"}
    given = accuracy | counts | speed | where | origin | {"weights_sha256": weights_sha256}
    return Result(format_version=RESULT_FORMAT, experiment=EXPERIMENT, **given)


def make_begun_run(store):
    """A run with all files of one that trains and has failed before."""
    run = RunDirectory.of(store, EXPERIMENT)
    run.create(EXPERIMENT)
    record_start(run, num_ranks=1)
    record_end(run, "failed", "time limit")
    for step in (1, 2, 3):
        run.append_metrics({"step": step, "num_steps": 9, "epoch": step / 3, "loss": 2.0 / step, "images_per_s": 10.0})
        heads = {"nonlocality": [[1.5, 2.5]], "centers": [[[0.5, 1.0]]], "precisions": [[[1.0, 0.0, 1.0]]]}
        run.append_metrics({"step": step, "num_steps": 9, "epoch": step / 3, **heads})
    Heartbeat(run)
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path=str(run.log_path)))
    return run


def make_finished_run(store):
    """A run with a result, and weights that its experiment's network reads."""
    run = make_begun_run(store)
    torch.manual_seed(0)
    network = build_model("deit_micro", num_classes=10, image_size=32, **OPTIONS)
    run.write_result(make_result(save_weights(network.state_dict(), run.weights_path)))
    return run


def write_maps(run):
    """Write attention maps as a run could have recorded them; returns the file's SHA-256."""
    about = {"layers": [0], "grid": [2, 2], "num_images": 4, "queries": [[1, 1]]}
    arrays = {"before/00/central": np.zeros((1, 2, 2), np.float32)}
    save_file(arrays, run.maps_path, {name: json.dumps(value) for name, value in about.items()})
    return sha256_of(run.maps_path)


def make_submission(store):
    """The folder of a submission of two tasks."""
    tasks = ((EXPERIMENT,), (EXPERIMENT.with_seed(1),))
    ids = tuple(tuple(experiment.id for experiment in task) for task in tasks)
    about = {"name": "suite-smoke-1", "suite": "suite", "profile": "smoke", "num_seeds": 2, "time_min": 60}
    return write_submission(store, Submission(**about, resources=Resources(), tasks=tasks, ids=ids))


def prepare_images(folder, storage_format):
    """The packaged images, as the command prepares them in a format."""
    shutil.copytree(_prepare(storage_format), folder, dirs_exist_ok=True)
    return folder / "cifar10_sample" / storage_format


@functools.cache
def _prepare(storage_format):
    made = Path(MADE.name) / storage_format
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = prepare(["--dataset", "cifar10_sample", "--format", storage_format, "--out", str(made)])
    assert status == 0, said.getvalue()
    return made


def images_of(prepared):
    """All files of prepared images but the manifest."""
    return sorted(path for path in prepared.rglob("*") if path.is_file() and path.name != "manifest.json")
