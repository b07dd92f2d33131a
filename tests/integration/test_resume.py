"""A run killed with SIGKILL and started again ends with the weights of an uninterrupted one, bit by bit."""

import functools
import io
import json
import random
import tarfile
import time

import pytest
from PIL import Image
from safetensors.torch import load_file

from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.prepare.__main__ import main as prepare
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 10.0, "batch_size": 32, "drop_path": 0.2, "warmup_epochs": 1.5})
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)
OPTIONS = {"dim": 8, "depth": 1, "kernel_size": 3, "patch_size": 8}
WITH_BATCH_NORM = EXPERIMENT.model_copy(
    update={
        "model": "convmixer",
        "model_options": OPTIONS,
        "recipe": RECIPE.model_copy(update={"drop_path": 0.0, "learning_rate": 1e-2}),
    }
)
EXPERIMENTS = {experiment.model: experiment for experiment in (EXPERIMENT, WITH_BATCH_NORM)}
NUM_STEPS = 100  # a metrics line every second step


def resources(num_ranks):
    return Resources(num_ranks=num_ranks, checkpoint_every_s=0.1)


def wait_for_step(run, processes, attempt, step):
    def there():
        return len(read_attempts(run)) == attempt and run.last_metrics().get("step", 0) >= step

    wait_until(there, processes, run)


def wait_until(there, processes, run):
    """Nothing watches this run but who waits here."""
    end = time.monotonic() + 300
    while not there() and all(process.is_alive() for process in processes) and time.monotonic() < end:
        time.sleep(0.005)
    assert all(process.is_alive() for process in processes), run.log_path.read_text()
    assert there(), f"it hangs: {run.log_path.read_text()}"


def finish(processes):
    """Wait for the exit statuses."""
    for process in processes:
        process.join(300)
    return {process.exitcode for process in processes}


def kill(processes, run):
    for process in processes:
        process.kill()
        process.join()
    while run.is_claimed():  # the ranks die with their parent, a moment later
        time.sleep(0.01)


def without_times(metrics):
    times = ("images_per_s", "data_wait_percent")
    return [{key: value for key, value in line.items() if key not in times} for line in metrics]


@pytest.fixture(scope="module")
def uninterrupted(start, tmp_path_factory):
    """A run that is left alone, of an experiment with so many ranks; each is trained once."""

    @functools.cache
    def train(num_ranks, model):
        run = RunDirectory.of(tmp_path_factory.mktemp("whole"), EXPERIMENTS[model])
        run.create(EXPERIMENTS[model])
        assert finish(start(run, resources(num_ranks))) == {0}, run.log_path.read_text()
        return run

    return train


@pytest.mark.parametrize(
    ("model", "num_ranks", "num_kills", "by_rank"),
    [("convit_micro", 1, 2, True), ("convit_micro", 2, 1, False), ("convmixer", 2, 1, True)],
)
def test_killed_and_resumed_equals_uninterrupted_at_atol_0(
    start, tmp_path, uninterrupted, model, num_ranks, num_kills, by_rank
):
    whole, killed = uninterrupted(num_ranks, model), RunDirectory.of(tmp_path, EXPERIMENTS[model])
    killed.create(EXPERIMENTS[model])
    moments = random.Random(num_ranks).sample(range(12, NUM_STEPS // 2), num_kills)  # far from the end: it is caught
    for attempt, step in enumerate(sorted(moments), start=1):
        processes = start(killed, resources(num_ranks), by_rank=by_rank)
        wait_for_step(killed, processes, attempt, step)
        time.sleep(random.Random(step).random() * 0.05)  # anywhere within a step or a checkpoint
        kill(processes, killed)
        assert not killed.result_path.exists()
        assert list(killed.checkpoint_path.glob("step-*"))
    assert finish(start(killed, resources(num_ranks))) == {0}, killed.log_path.read_text()
    expected, found = load_file(whole.weights_path), load_file(killed.weights_path)
    assert [name for name in expected if not expected[name].equal(found[name])] == []
    assert without_times(killed.read_metrics()) == without_times(whole.read_metrics())
    assert killed.read_result().num_attempts == num_kills + 1


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_run_that_is_resumed_elsewhere_keeps_its_number_of_threads_and_names_both_machines(
    start, tmp_path, uninterrupted, num_ranks
):
    whole, moved = uninterrupted(num_ranks, "convit_micro").read_result(), RunDirectory.of(tmp_path, EXPERIMENT)
    moved.create(EXPERIMENT)
    processes = start(moved, resources(num_ranks))
    wait_for_step(moved, processes, attempt=1, step=20)
    kill(processes, moved)
    here = json.loads(moved.environment_path.read_text())
    moved.environment_path.write_text(json.dumps(here | {"device": "another"}))
    assert finish(start(moved, resources(num_ranks).model_copy(threads_per_rank=2))) == {0}, moved.log_path.read_text()
    found = moved.read_result()
    assert (found.threads_per_rank, found.weights_sha256) == (1, whole.weights_sha256)
    assert "threads a rank: 1, as its checkpoint was computed with, not the 2" in moved.log_path.read_text()
    (other,) = json.loads(moved.environment_path.read_text())["also_on"]
    assert other == f"another ({here['processor']}), torch {here['packages']['torch']}, ranks: {num_ranks}"


def test_a_run_whose_newest_checkpoint_is_damaged_ends_with_the_weights_of_an_uninterrupted_one(
    start, tmp_path, uninterrupted
):
    whole, damaged = uninterrupted(1, "convit_micro"), RunDirectory.of(tmp_path, EXPERIMENT)
    damaged.create(EXPERIMENT)
    processes = start(damaged, resources(1))
    wait_until(lambda: len(damaged.checkpoint_steps()) >= 2, processes, damaged)
    kill(processes, damaged)
    newest, before, *_ = damaged.checkpoint_steps()
    path = next(damaged.checkpoint_at(newest).glob("*.pt"))
    data = path.read_bytes()
    path.write_bytes(data[:100_000] + bytes([data[100_000] ^ 1]) + data[100_001:])
    assert finish(start(damaged, resources(1))) == {0}, damaged.log_path.read_text()
    assert f"the checkpoint after step {newest} cannot be gone on from" in damaged.log_path.read_text()
    assert read_attempts(damaged)[-1].from_step == before
    assert damaged.read_result().num_unusable_checkpoints == 1
    assert damaged.read_result().weights_sha256 == whole.read_result().weights_sha256
    assert without_times(damaged.read_metrics()) == without_times(whole.read_metrics())


@pytest.fixture
def in_place(tmp_path):
    """A data folder with a set, "photos", whose images are in two shards and nowhere else."""
    arrays = open_arrays(ensure("cifar10_sample"))
    (tmp_path / "shards").mkdir()
    for split in ("train", "test"):
        with tarfile.open(tmp_path / "shards" / f"{split}-0.tar", "w") as tar:
            for number, label in enumerate(arrays[f"{split}_labels"].tolist()):
                png = io.BytesIO()
                Image.fromarray(arrays[f"{split}_images"][number].copy()).save(png, "png")
                for name, data in (("png", png.getvalue()), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{number:04}.{name}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    made = ["--dataset", "photos", "--source", str(tmp_path / "shards"), "--in-place", "--out", str(tmp_path)]
    assert prepare(made) == 0
    return str(tmp_path)


def test_a_run_that_reads_shards_in_place_is_killed_and_resumed_likewise(start, tmp_path, in_place):
    experiment = EXPERIMENT.model_copy(update={"dataset": "photos"})
    whole, killed = (RunDirectory.of(tmp_path / name, experiment) for name in ("whole", "killed"))
    with_images = resources(1).model_copy(update={"data_dir": in_place})
    for run in (whole, killed):
        run.create(experiment)
    processes = start(killed, with_images)
    wait_for_step(killed, processes, attempt=1, step=20)
    kill(processes, killed)
    assert finish([*start(killed, with_images), *start(whole, with_images)]) == {0}, killed.log_path.read_text()
    assert killed.read_result().num_attempts == 2
    assert killed.read_result().weights_sha256 == whole.read_result().weights_sha256
