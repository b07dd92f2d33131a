"""The kinds of files that are read, each with all who read it: whole, to be damaged by the tests of stages."""

import functools
import io
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commits import make_checkpoint
from rich.console import Console
from whole_files import (
    EXPERIMENT,
    images_of,
    make_begun_run,
    make_finished_run,
    make_result,
    make_submission,
    prepare_images,
    write_maps,
)

from imagesets.catalog import CATALOG
from imagesets.fetch import ensure, storage
from imagesets.manifest import read_index, read_manifest
from imagesets.prepare.conversion import check_prepared
from imagesets.stored_split import open_splits
from launchers.core.plan import Job, read_progress
from launchers.slurm.grid_status import JobStatus
from launchers.slurm.lost_starts import LostStart, read_starts
from launchers.slurm.status_table import duration
from launchers.slurm.submission_record import read_submission
from launchers.tracking.follower import flatten
from leaderboards.boards.logged import read_curve, read_layers, read_paths
from leaderboards.boards.recorded import read_recorded
from suite.base.errors import SuiteError
from suite.spec.resources import Resources
from suite.store.attempts import read_attempts
from suite.store.heartbeat import find_stall, read_beat
from suite.store.run_status import read_run_status
from suite.training.checkpoint_files import CheckpointManifest, DamageError
from suite.training.start import trained_network

REFUSALS = (SuiteError, DamageError)
LIMIT_S = 20  # for one reading; a reader that takes longer hangs


class HangError(BaseException):
    """A reader does not come to an end; no reader swallows it, and Hypothesis does not try to shrink it."""


@dataclass
class Subject:
    """Files, and a function that calls all who read them, one after the other; the first file is what is rewritten."""

    read: Callable
    paths: list

    @property
    def path(self):
        return self.paths[0]

    def try_out(self, data, tally):
        """Read it with this content; any error but ours passes."""
        self.path.write_bytes(data)
        before = signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(LIMIT_S)
        try:
            self.read()
            tally.add()
        except REFUSALS:
            tally.add(noticed=True)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def _give_up(number, frame):
    raise HangError(f"it is still being read after {LIMIT_S} s")


def places(content):
    """All values within JSON, as what holds them and its key."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(pairs):
        yield content, key
        yield from places(value)


def of_run(name, folder):
    run = make_finished_run(folder) if name == "result" else make_begun_run(folder)
    readers = {
        "result": run.read_result,
        "failure": run.read_failure,
        "experiment": run.read_experiment,
        "metrics": lambda: [run.read_metrics(), show_metrics(run)],
        "attempts": lambda: read_attempts(run),
        "heartbeat": lambda: [read_beat(run), find_stall(run)],
    }
    return Subject(
        lambda: [readers[name](), read_run_status(run, {}), read_attempts(run)], [getattr(run, f"{name}_path")]
    )


def show_metrics(run):
    """As the display, the figures and the trackers do."""
    progress = read_progress(run)
    duration(JobStatus(Job(EXPERIMENT, run, Resources()), "running", metrics=progress).remaining_s)
    for name in ("loss", "top1_percent"):
        read_curve([run], name)
    read_layers(run, "nonlocality")
    read_paths(run)
    list(flatten(progress))


def submission(folder):
    made = make_submission(folder)

    def read():
        submission = read_submission(made)
        return [submission.experiments(task) for task in submission.task_of.values()]

    return Subject(read, [made / "submission.json"])


def starts(folder):
    path = folder / "starts.jsonl"
    start = LostStart(kind="node", job="1_0", restarts=0, task=0, node="node1", reason="status 1")
    path.write_text(2 * f"{start.model_dump_json()}\n")
    return Subject(lambda: [one.describe() for one in read_starts(folder)], [path])


def images_manifest(folder):
    made = prepare_images(folder, "webdataset")
    return Subject(lambda: read_manifest(made).shards("train"), [made / "manifest.json"])


def images_index(folder):
    made = prepare_images(folder, "webdataset")
    return Subject(lambda: [read_index(made, "train"), read_index(made, "test")], [made / "index.safetensors"])


def checked_images(storage_format, folder):
    """As `--check` reads them."""
    prepared = prepare_images(folder, storage_format)
    return Subject(lambda: bool(check_prepared(prepared, Console(file=io.StringIO()))), images_of(prepared))


def images_in_training(storage_format, folder):
    """All images as a training gets them, without `--check`."""
    prepared = prepare_images(folder, storage_format)

    def read():
        splits = open_splits(CATALOG["cifar10_sample"], storage_format, folder).values()
        return [(split.labels.tolist(), [split.whole(i).tobytes() for i in range(len(split))]) for split in splits]

    return Subject(read, images_of(prepared))


def fetched_images(folder):
    """Arrays that were fetched, as a training gets them."""
    path = Path(shutil.copy(ensure("cifar10_sample"), folder))

    def read():
        storage.check_file(path, CATALOG["cifar10_sample"])
        return {name: array.tobytes() for name, array in storage.open_arrays(path).items()}

    return Subject(read, [path])


def checkpoint(folder):
    newest = make_checkpoint(folder)
    others = sorted(path for path in newest.iterdir() if path.name != "manifest.json")
    return Subject(lambda: bool(CheckpointManifest.read(newest)), [newest / "manifest.json", *others])


def weights(has_digest, folder):
    """Of a run whose result has their digest, or has none, so that the file's own reader is reached."""
    run = make_finished_run(folder)
    if not has_digest:
        run.write_result(run.read_result().model_copy(update={"weights_sha256": ""}))

    def read():
        found = trained_network(run, EXPERIMENT, 10).state_dict()
        return {name: tensor.tolist() for name, tensor in found.items()}

    return Subject(read, [run.weights_path])


def maps(has_digest, folder):
    """Of a run whose result has their digest, or that has no result, so that the file's own reader is reached."""
    run = make_begun_run(folder)
    digest = write_maps(run)
    if has_digest:
        run.write_result(make_result().model_copy(update={"maps_sha256": digest}))

    def read():
        recorded = read_recorded(run, ["central"])
        return recorded and {name: array.tolist() for name, array in recorded.arrays.items()}

    return Subject(read, [run.maps_path])


OF_A_RUN = ("result", "failure", "experiment", "metrics", "attempts", "heartbeat")
JSON_FILES = {f"{name} of a run": functools.partial(of_run, name) for name in OF_A_RUN} | {
    "submission": submission,
    "starts of a submission": starts,
    "manifest of images": images_manifest,
    "manifest of a checkpoint": checkpoint,
}
