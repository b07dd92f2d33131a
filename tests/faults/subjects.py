"""The kinds of files that are read, each with all who read it: whole, to be damaged by the tests of stages."""

import functools
import signal
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commits import make_checkpoint
from whole_files import (
    EXPERIMENT,
    NUM_CLASSES,
    make_begun_run,
    make_finished_run,
    make_submission,
    prepare_images,
    write_maps,
)

from imagesets.manifest import read_index, read_manifest
from launchers.core.plan import Job
from launchers.core.progress import read_progress
from launchers.slurm.grid_status import RunStatus, duration
from launchers.slurm.lost_starts import LostStart, read_starts
from launchers.slurm.submission import read_submission
from launchers.tracking.follower import flatten
from leaderboards.figures.parts.logged import read_curve, read_layers, read_paths
from leaderboards.figures.parts.recorded import read_recorded
from suite.base.errors import SuiteError
from suite.spec.resources import Resources
from suite.store.attempts import read_attempts
from suite.store.heartbeat import find_silence, read_beat
from suite.store.run_status import stand
from suite.training.checkpoint.manifest import CheckpointManifest, DamageError
from suite.training.start import trained_network

REFUSALS = (SuiteError, DamageError)
LIMIT_S = 20  # for one reading; a reader that takes longer hangs


class HangError(BaseException):
    """A reader does not come to an end; no reader swallows it, and Hypothesis does not try to shrink it."""


@dataclass
class Subject:
    """A file, and a function that calls all who read it, one after the other."""

    path: Path
    read: Callable

    def try_out(self, data, tally):
        """Read it with this content; any error but ours passes."""
        self.path.write_bytes(data)
        try:
            with _limited():
                self.read()
            tally.add()
        except REFUSALS:
            tally.add(noticed=True)


@contextmanager
def _limited():
    def give_up(number, frame):
        raise HangError(f"it is still being read after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def places(content):
    """All values within JSON, as what holds them and its key."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(pairs):
        yield content, key
        yield from places(value)


def _of_run(name, folder):
    run = make_finished_run(folder) if name == "result" else make_begun_run(folder)
    readers = {
        "result": run.read_result,
        "failure": run.read_failure,
        "experiment": run.read_experiment,
        "metrics": lambda: [run.read_metrics(), _show_metrics(run)],
        "attempts": lambda: read_attempts(run),
        "heartbeat": lambda: [read_beat(run), find_silence(run)],
    }
    return Subject(getattr(run, f"{name}_path"), lambda: [stand(run, {}), read_attempts(run), readers[name]()])


def _show_metrics(run):
    """As the display, the figures and the trackers do."""
    progress = read_progress(run)
    duration(RunStatus(Job(EXPERIMENT, run, Resources()), "running", metrics=progress).remaining_s)
    for name in ("loss", "top1_percent"):
        read_curve([run], name)
    read_layers(run, "nonlocality")
    read_paths(run)
    list(flatten(progress))


def _submission(folder):
    made = make_submission(folder)

    def read():
        submission = read_submission(made)
        return [submission.experiments(task) for task in submission.task_of.values()]

    return Subject(made / "submission.json", read)


def _starts(folder):
    path = folder / "starts.jsonl"
    start = LostStart(kind="node", job="1_0", restarts=0, task=0, node="node1", reason="status 1")
    path.write_text(2 * f"{start.model_dump_json()}\n")
    return Subject(path, lambda: [one.describe() for one in read_starts(folder)])


def _images_manifest(folder):
    made = prepare_images(folder, "webdataset")
    return Subject(made / "manifest.json", lambda: read_manifest(made).shards("train"))


def _images_index(folder):
    made = prepare_images(folder, "webdataset")
    return Subject(made / "index.safetensors", lambda: [read_index(made, "train"), read_index(made, "test")])


def _checkpoint_manifest(folder):
    newest = make_checkpoint(folder)
    return Subject(newest / "manifest.json", lambda: CheckpointManifest.read(newest))


def _weights(folder):
    """As of a run from before results had digests, so that the file's own reader is reached."""
    run = make_finished_run(folder)
    run.write_result(run.read_result().model_copy(update={"weights_sha256": ""}))
    return Subject(run.weights_path, lambda: trained_network(run, EXPERIMENT, NUM_CLASSES))


def _maps(folder):
    """As of a run from before results had their digest, so that the file's own reader is reached."""
    run = make_begun_run(folder)
    write_maps(run)
    return Subject(run.maps_path, lambda: read_recorded(run, ["central"]))


OF_A_RUN = ("result", "failure", "experiment", "metrics", "attempts", "heartbeat")
JSON_FILES = {f"{name} of a run": functools.partial(_of_run, name) for name in OF_A_RUN} | {
    "submission": _submission,
    "starts of a submission": _starts,
    "manifest of images": _images_manifest,
    "manifest of a checkpoint": _checkpoint_manifest,
}
TENSORS = {"index of images": _images_index, "weights": _weights, "attention maps": _maps}
