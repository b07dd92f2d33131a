"""The trackers: each opens a run under its stable id, takes numbers by step, and in the end the result."""

import contextlib
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = "convolutional-prior"  # of all suites, which share runs; WANDB_PROJECT names another


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker sees it. ``folder`` is for this tracker and this run alone; a tracker that takes lines late
    calls ``keepalive`` for each of them."""

    id: str
    folder: Path
    config: Mapping[str, Any]
    tags: tuple[str, ...]
    keepalive: Callable[[], object]

    @property
    def group(self) -> str:
        """The run's configuration, by which trackers group its seeds."""
        return self.id.partition("/")[0]


class Tracker(ABC):
    """A run that is being tracked. It was begun anew, unless ``known_until`` says which steps are there."""

    known_until = -1

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def flush(self) -> None:  # noqa: B027  # a tracker that writes by itself has nothing to do
        """Let those who look see what was logged; called once for many lines."""

    def end(self, step: int, summary: Mapping[str, float]) -> None:
        """Take the result of a finished run. ``close`` follows."""
        self.log(step, summary)

    @abstractmethod
    def close(self) -> None: ...


def _clear(folder: Path, names: str) -> None:
    """Remove what a tracker has written of a run before: nothing else, and nothing through a link."""
    for path in folder.glob(names) if not folder.is_symlink() else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


class TensorBoard(Tracker):
    """Event files below ``tracking/tensorboard``, written as torch's ``SummaryWriter`` does, without torch."""

    def __init__(self, run: TrackedRun) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        _clear(run.folder, "events.out.tfevents.*")
        self._writer = EventFileWriter(str(run.folder))
        self._add(0, session_log=SessionLog(status=SessionLog.START))  # a viewer that is open drops what it has

    def log(self, step: int, values: Mapping[str, float]) -> None:
        found = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._add(step, summary=self._summary(value=found))

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _add(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))


class Wandb(Tracker):
    """Weights & Biases, offline unless WANDB_MODE says otherwise; ``wandb sync`` sends what is below
    ``tracking/wandb``."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb

        mode = os.environ.get("WANDB_MODE", "offline")
        is_online = mode in ("online", "shared")
        if not is_online:
            _clear(run.folder, "wandb")
        run.folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=run.id.replace("/", "-"),
            name=run.id,
            group=run.group,
            tags=run.tags,
            config=dict(run.config),
            dir=str(run.folder),
            mode=mode,
            resume="allow" if is_online else None,
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True),
        )
        self.known_until = self._run.step - 1 if is_online else -1

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self, step: int, summary: Mapping[str, float]) -> None:
        self._run.summary.update(dict(summary))

    def close(self) -> None:
        self._run.finish()


class Trackio(Tracker):
    """trackio, whose database is below ``tracking/trackio`` unless TRACKIO_DIR names another folder.

    It has one run at a time in a process, so a run comes whole, when it ends or the follower does.
    """

    def __init__(self, run: TrackedRun) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(run.folder.parents[1]))
        self._tracked = run
        self._lines: list[tuple[int, dict[str, float]]] = []

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._lines.append((step, dict(values)))

    def close(self) -> None:
        import trackio

        run, name = self._tracked, self._tracked.id.replace("/", "-")
        with contextlib.suppress(ValueError):  # no run was ever tracked there
            for known in trackio.Api().runs(PROJECT):
                if known.name == name:
                    known.delete()
        config = {**run.config, "tags": list(run.tags)}
        made = trackio.init(PROJECT, name=name, group=run.group, config=config, resume="never", embed=False)
        for step, values in self._lines:
            made.log(values, step=step)
            run.keepalive()
        made.finish()


TRACKERS: Mapping[str, Callable[[TrackedRun], Tracker]] = {
    "tensorboard": TensorBoard,
    "trackio": Trackio,
    "wandb": Wandb,
}
