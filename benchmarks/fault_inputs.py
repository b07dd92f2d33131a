"""Files of every kind that we read, damaged by Hypothesis: each is read, or refused by an error of ours.

Whole files are cut, spliced and changed in single bytes; JSON also gets other values, names and shapes. What fails is
shrunk to the smallest such file.
"""

from __future__ import annotations

import functools
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from fault_commits import commit_checkpoint, run_alone
from fault_counts import Counts, Fault
from fault_records import (
    EXPERIMENT,
    NUM_CLASSES,
    make_begun_run,
    make_finished_run,
    make_submission,
    prepare_images,
    write_maps,
)
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from imagesets.manifest import read_index, read_manifest
from launchers.core.plan import Job, read_progress
from launchers.slurm.grid_status import JobStatus
from launchers.slurm.lost_starts import LostStart, read_starts
from launchers.slurm.status_table import duration
from launchers.slurm.submission import read_submission
from launchers.tracking.follower import flatten
from leaderboards.figures.parts.logged import read_curve, read_layers, read_paths
from leaderboards.figures.parts.recorded import read_recorded
from suite.base.errors import SuiteError
from suite.spec.resources import Resources
from suite.store.attempts import read_attempts
from suite.store.heartbeat import find_silence, read_beat
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status
from suite.training.checkpoint_files import CheckpointManifest, DamageError
from suite.training.start import trained_network

_ROUND = 50  # inputs
_LIMIT_S = 20  # for one input; a reader that takes longer hangs

_hostile = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["NaN", "1e999", "\x1b[2J", "../..", "\udcff", "0", 10**400, -1, "a" * 5000, [[[]]], {"a": {}}])
)  # fmt: skip
_values = st.recursive(
    _hostile, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


class HangError(BaseException):
    """A reader does not come to an end; no reader swallows it, and Hypothesis does not try to shrink it."""


@st.composite
def _damaged_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """Cut, spliced, or with other bytes in it."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 16))
        data[place : place + length] = draw(st.binary(max_size=16) | st.sampled_from(_TOKENS))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


_TOKENS = [
    b"[" * 20_000,
    b"null",
    b"NaN",
    b"1e999",
    b"\xff\xfe",
    b"\x00",
    b"\n",
    b'"',
    b"{}",
    b"-",
    b"9" * 5000,
    b"\r\n\n",
]


@st.composite
def _damaged_json(draw: st.DrawFn, whole: bytes) -> bytes:
    """One value of one line replaced, removed, doubled or given another name."""
    lines = whole.decode().splitlines() if whole.count(b"\n{") else [whole.decode()]
    number = draw(st.integers(0, len(lines) - 1))
    content = json.loads(lines[number])
    parent, key = draw(st.sampled_from(list(places(content))))
    match draw(st.sampled_from(["replace", "remove", "rename", "replace all"])):
        case "replace":
            parent[key] = draw(_values)
        case "remove":
            del parent[key]
        case "rename" if isinstance(parent, dict):
            parent[draw(st.text(max_size=8))] = parent.pop(key)
        case _:
            content = draw(_values)
    lines[number] = json.dumps(content)
    return "\n".join(lines).encode() + b"\n"


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """All values within JSON, as what holds them and its key."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(pairs):
        yield content, key
        yield from places(value)


@dataclass
class Subject:
    """A file, and all who read it.

    Attributes:
        read: the readers, one after the other.
        tensors: whether it is no JSON.
    """

    path: Path
    read: Callable[[], object]
    tensors: bool = False
    counts: Counts = field(default_factory=Counts)

    def try_out(self, data: bytes) -> None:
        """Read it with this content; any error but ours passes."""
        self.path.write_bytes(data)
        try:
            with _limited():
                self.read()
            self.counts += Counts(1)
        except (SuiteError, DamageError):
            self.counts += Counts(1, noticed=1)


@contextmanager
def _limited() -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise HangError(f"it is still being read after {_LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(make: Callable[[Path], Subject], num: int, draw: Random, folder: Path) -> Counts:
    """Let Hypothesis damage a file; the first error that is none of ours ends the round.

    Args:
        make: makes the file.
        num: damaged versions of it.
        draw: gives Hypothesis its seed.
        folder: for the file.
    """
    subject = make(folder)
    whole = subject.path.read_bytes()
    subject.read()  # whole, it can be read
    damaged = _damaged_bytes(whole) if subject.tensors else _damaged_bytes(whole) | _damaged_json(whole)

    @seed(draw.getrandbits(32))
    @settings(
        max_examples=num,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged)
    def hold(data: bytes) -> None:
        subject.try_out(data)

    try:
        hold()
    except (Exception, HangError) as error:
        story = f"{type(error).__name__}: {error}; {subject.path.name}: {subject.path.read_bytes()[:120]!r}"[:400]
        return subject.counts + Counts(1, lost=1, stories=(story,))
    return subject.counts


def _of_run(name: str, make: Callable[[Path], RunDirectory], folder: Path) -> Subject:
    run = make(folder)
    readers: dict[str, list[Callable[[], object]]] = {
        "result": [run.read_result],
        "failure": [run.read_failure],
        "experiment": [run.read_experiment],
        "metrics": [run.read_metrics, lambda: _show_metrics(run)],
        "attempts": [lambda: read_attempts(run)],
        "heartbeat": [lambda: read_beat(run), lambda: find_silence(run)],
    }
    always: list[Callable[[], object]] = [lambda: read_run_status(run, {}), lambda: read_attempts(run)]
    return Subject(getattr(run, f"{name}_path"), lambda: [read() for read in always + readers[name]])


def _show_metrics(run: RunDirectory) -> None:
    """As the display, the figures and the trackers do."""
    progress = read_progress(run)
    duration(JobStatus(Job(EXPERIMENT, run, Resources()), "running", metrics=progress).remaining_s)
    for name in ("loss", "top1_percent"):
        read_curve([run], name)
    read_layers(run, "nonlocality")
    read_paths(run)
    list(flatten(progress))


def _submission(folder: Path) -> Subject:
    made = make_submission(folder)

    def read() -> object:
        submission = read_submission(made)
        return [submission.experiments(task) for task in submission.task_of.values()]

    return Subject(made / "submission.json", read)


def _starts(folder: Path) -> Subject:
    path = folder / "starts.jsonl"
    start = LostStart(kind="node", job="1_0", restarts=0, task=0, node="node1", reason="status 1")
    path.write_text(2 * f"{start.model_dump_json()}\n", encoding="utf-8")
    return Subject(path, lambda: [one.describe() for one in read_starts(folder)])


def _images_manifest(folder: Path) -> Subject:
    made = prepare_images(folder, "webdataset")
    return Subject(made / "manifest.json", lambda: read_manifest(made).shards("train"))


def _images_index(folder: Path) -> Subject:
    made = prepare_images(folder, "webdataset")
    return Subject(made / "index.safetensors", lambda: [read_index(made, "train"), read_index(made, "test")], True)


def _checkpoint_manifest(folder: Path) -> Subject:
    run_alone(commit_checkpoint, folder)
    newest = RunDirectory(folder).checkpoint_at(3)
    return Subject(newest / "manifest.json", lambda: CheckpointManifest.read(newest))


def _weights(folder: Path) -> Subject:
    """As of a run from before results had digests, so that the file's own reader is reached."""
    run = make_finished_run(folder)
    result = run.read_result()
    assert result is not None
    run.write_result(result.model_copy(update={"weights_sha256": ""}))
    return Subject(run.weights_path, lambda: trained_network(run, EXPERIMENT, NUM_CLASSES), True)


def _maps(folder: Path) -> Subject:
    """As of a run from before results had their digest, so that the file's own reader is reached."""
    run = make_begun_run(folder)
    write_maps(run)
    return Subject(run.maps_path, lambda: read_recorded(run, ["central"]), True)


def json_files() -> dict[str, Callable[[Path], Subject]]:
    """The kinds of JSON files that are read, each with all who read it."""
    of_runs = {
        f"{name} of a run": functools.partial(_of_run, name, make_finished_run if name == "result" else make_begun_run)
        for name in ("result", "failure", "experiment", "metrics", "attempts", "heartbeat")
    }
    return {
        **of_runs,
        "submission": _submission,
        "starts of a submission": _starts,
        "manifest of images": _images_manifest,
        "manifest of a checkpoint": _checkpoint_manifest,
    }


def faults() -> list[Fault]:
    """13 kinds of files, with 100 inputs a round: 13,000 at least."""
    tensors = {"index of images": _images_index, "weights": _weights, "attention maps": _maps}
    return [
        Fault(f"damaged input, {name}", functools.partial(fuzz, make, _ROUND), rounds=20, rounds_in_tests=1)
        for name, make in (json_files() | tensors).items()
    ]
