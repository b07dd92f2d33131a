"""The files that a run leaves behind. ``RunDirectory`` is the only place that spells a run's file names.

    RUNS/experiments/<model>-<configuration_id>/seed-<n>/
        experiment.json    what is trained; written first
        environment.json   where and with which versions the latest attempt ran, and on what others before it
        attempts.jsonl     when each attempt started and ended, and where; see ``attempts``
        metrics.jsonl      one line per logged step
        heartbeat.json     what the first rank is doing now; see ``heartbeat``
        checkpoint/        step-<n>/ folders, each complete from the moment it has its name; the newest two are kept
        weights.safetensors, result.json   only of a finished run
        maps.safetensors   of a finished run of kind "maps": what ``suite.training.measure.maps`` recorded
        predictions.npz    of a finished run: the class that it predicts for each test image
        failure.json       why the latest attempt failed
        log.txt            everything the processes printed
        claim.lock         locked by the process that trains it

What stands in ``result.json`` and ``failure.json`` is ``suite.store.results``. Training and leaderboards meet only
through these files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import filelock

from suite.base.errors import KeptRecordError, RecordError
from suite.base.files import append_record, disk_error, naming_disk_errors, read_file, read_tail, write_atomically
from suite.base.reading import read_metrics_line, read_model, seal, unreadable, unseal
from suite.spec.experiment import Experiment
from suite.store.old_names import folders_of
from suite.store.results import RESULT_FORMAT, Failure, FailureKind, Result, format_of

EXPERIMENTS = "experiments"  # the folder of all runs in a store
_CHECKPOINT = re.compile(r"step-(0|[1-9][0-9]{0,8})")  # a complete one's folder
_PARTIAL = "partial-"  # what the folder of one that is being written, or removed, is called
_UNUSABLE = "unusable-"  # what that of one is called that cannot be gone on from
_OURS = re.compile(rf"({_UNUSABLE})?{_CHECKPOINT.pattern}|{_PARTIAL}[0-9]{{1,9}}")
_TAIL_BYTES = 16_384  # of the metrics: a line on the attention of a large model takes 4,000
_TRAIN_AGAIN = "Use --retry-failed: it sets the file aside and trains again."
_FIRST_SEALED = 4  # format of results, which brought ``threads_per_rank`` too
_without_seed = attrgetter(*(name for name in Experiment.model_fields if name != "seed"))


class _FileOfRun:
    """A file name that becomes a path when asked for: a leaderboard opens thousands of runs for one file each."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: RunDirectory, owner: type[RunDirectory] | None = None) -> Path:
        return run.path / self.name


class RunDirectory:
    """One run's files. ``path`` is ``<store>/experiments/<experiment.id>``."""

    experiment_path = _FileOfRun("experiment.json")
    environment_path = _FileOfRun("environment.json")
    attempts_path = _FileOfRun("attempts.jsonl")
    metrics_path = _FileOfRun("metrics.jsonl")
    heartbeat_path = _FileOfRun("heartbeat.json")
    checkpoint_path = _FileOfRun("checkpoint")
    weights_path = _FileOfRun("weights.safetensors")
    maps_path = _FileOfRun("maps.safetensors")
    predictions_path = _FileOfRun("predictions.npz")
    result_path = _FileOfRun("result.json")
    failure_path = _FileOfRun("failure.json")
    log_path = _FileOfRun("log.txt")
    claim_path = _FileOfRun("claim.lock")

    def __init__(self, path: Path, experiment: Experiment | None = None) -> None:
        self.path = path
        self._experiment = experiment  # of any seed, where known: saves hashing what was read

    @classmethod
    def of(cls, store: Path, experiment: Experiment) -> RunDirectory:
        places = [folder / f"seed-{experiment.seed}" for folder in folders_of(Path(store, EXPERIMENTS), experiment)]
        if len(places) > 1:  # some are from when a custom model's name was in the identity
            places.sort(key=lambda place: (not cls(place).result_path.exists(), not place.exists()))
        return cls(places[0], experiment)

    @property
    def id(self) -> str:
        """The experiment's id, by the names of the folders."""
        return "/".join(self.path.parts[-2:])

    def of_parent(self, parent: Experiment) -> RunDirectory:
        """Find the run of an experiment that this one depends on, in the same store."""
        return RunDirectory.of(self.path.parents[2], parent)

    def create(self, experiment: Experiment) -> None:
        """Make the folder and write what is to be trained; a no-op where both are there."""
        with naming_disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(RecordError):  # missing, or broken by a crash: written below
            if self.read_experiment().id == experiment.id:
                return
        write_atomically(self.experiment_path, experiment.model_dump_json(indent=1).encode())

    def read_experiment(self) -> Experiment:
        """Read what is to be trained; RecordError if that is not there, or cannot be read."""
        try:
            return read_model(Experiment, read_file(self.experiment_path))
        except (OSError, ValueError) as error:
            advice = "Expected a run's folder as the grid makes it: start the grid again."
            raise unreadable(self.experiment_path, error, advice) from error

    @contextlib.contextmanager
    def claim(self, timeout_s: float = 0.0) -> Iterator[bool]:
        """Try to own this run: yields whether we do. The kernel drops the claim when its owner dies.

        It is a ``flock``: on a shared folder it holds between nodes where the file system carries locks
        (NFS 4, Lustre with ``flock``, GPFS, CephFS).
        """
        lock = filelock.FileLock(self.claim_path)
        try:
            held = lock.acquire(timeout=timeout_s)
        except filelock.Timeout:
            yield False
            return
        except OSError as error:
            raise disk_error(self.claim_path, error) from error
        with held:
            yield True

    def is_claimed(self) -> bool:
        """Say whether a process holds the claim. Asks with a shared lock, which needs no right to write."""
        try:
            descriptor = os.open(self.claim_path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:  # not there, so never claimed, or not ours to look at
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def checkpoint_at(self, step: int) -> Path:
        """The folder of the checkpoint after so many steps, which need not exist."""
        return self.checkpoint_path / f"step-{step}"

    def partial_checkpoint_at(self, step: int) -> Path:
        """The folder of the checkpoint after so many steps while it is incomplete."""
        return self.checkpoint_path / f"{_PARTIAL}{step}"

    def checkpoint_steps(self) -> list[int]:
        """List the steps of all complete checkpoints, the newest first."""
        found = (_CHECKPOINT.fullmatch(name) for name in self._checkpoint_folders())
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def _checkpoint_folders(self) -> list[str]:
        """Names of the folders under ``checkpoint/`` that can be ours: a link's content is not."""
        with contextlib.suppress(OSError), os.scandir(self.checkpoint_path) as found:
            return sorted(one.name for one in found if one.is_dir(follow_symlinks=False) and _OURS.fullmatch(one.name))
        return []

    def newest_checkpoint(self) -> int | None:
        """Find the step of the newest complete checkpoint, or None."""
        return next(iter(self.checkpoint_steps()), None)

    def set_checkpoint_aside(self, step: int) -> None:
        """Give a checkpoint a name that is no complete one's, until others are dropped."""
        path = self.checkpoint_at(step)
        aside = path.with_name(f"{_UNUSABLE}{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with naming_disk_errors(path):
            path.rename(aside)

    def drop_checkpoints(self, num_kept: int = 0) -> None:
        """Remove checkpoints, complete or not, but for the newest complete ones; nothing that is none, or a link's.

        A complete one is renamed first, so that a kill leaves no half of one under its name.
        """
        if self.checkpoint_path.is_symlink():
            return
        kept = [self.checkpoint_at(step) for step in self.checkpoint_steps()[:num_kept]]
        for name in self._checkpoint_folders():  # sorted: what a kill left of an earlier removal comes first
            path = self.checkpoint_path / name
            with contextlib.suppress(OSError):
                if path not in kept:
                    doomed = self.partial_checkpoint_at(int(name.rpartition("-")[2]))
                    shutil.rmtree(path.rename(doomed), ignore_errors=True)
        with contextlib.suppress(OSError):  # checkpoints, or something of somebody else's
            self.checkpoint_path.rmdir()

    def read_result(self) -> Result | None:
        """Read the result; None where the run has not finished; RecordError if it is broken or of another run.

        KeptRecordError if it is of a newer suite, or if reading failed, as where a disk is away for a moment.
        """
        data = b""
        try:
            written = read_file(self.result_path)
            data = unseal(written)
            result = read_model(Result, data)
            if data == written and (result.format_version >= _FIRST_SEALED or result.threads_per_rank):
                raise ValueError("it was changed, the seal is missing that it was written with")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._refuse_newer(data)
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which a FIFO or a folder gives
                raise KeptRecordError(f"cannot read {self.result_path}: {error}. Mend this and start again.") from error
            raise unreadable(self.result_path, error, _TRAIN_AGAIN) from error
        if not self._is_of(result.experiment):
            raise RecordError(
                f"{self.result_path} records {result.experiment.id}, but its folder is {self.id}. {_TRAIN_AGAIN}"
            )
        return result

    def _is_of(self, found: Experiment) -> bool:
        """Whether this is the folder of ``found``. Comparing fields is many times cheaper than hashing."""
        if self.path.name != f"seed-{found.seed}":
            return False
        known = self._experiment
        if known is not None and _without_seed(found) == _without_seed(known):
            return True
        name = self.path.parent.name
        return name == found.configuration or name == found.old_configuration  # which is hashed only if asked

    def _refuse_newer(self, data: bytes) -> None:
        if (version := format_of(data)) > RESULT_FORMAT:
            raise KeptRecordError(
                f"{self.result_path} is of a newer version of the suite: found format {version}, expected at most "
                f"{RESULT_FORMAT}. Update the suite to read this store; the file itself is whole, keep it."
            )

    def set_result_aside(self, suffix: str) -> None:
        """Rename a result that does not count, if there is one."""
        if self.result_path.exists():
            self.result_path.replace(self.result_path.with_suffix(suffix))

    def write_result(self, result: Result) -> None:
        write_atomically(self.result_path, seal(result.model_dump_json(indent=1).encode()))
        self.failure_path.unlink(missing_ok=True)
        self.drop_checkpoints()  # the weights are kept beside the result

    def read_failure(self) -> Failure | None:
        try:
            return read_model(Failure, read_file(self.failure_path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise unreadable(self.failure_path, error, _TRAIN_AGAIN) from error

    def record_failure(self, kind: FailureKind, reason: str) -> None:
        """Leave why this attempt ended, which its log tells in full."""
        self.write_failure(Failure(kind=kind, reason=reason, log_path=str(self.log_path)))

    def write_failure(self, failure: Failure) -> None:
        write_atomically(self.failure_path, failure.model_dump_json(indent=1).encode())

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read all complete lines, without a half-written last one (a killed writer); RecordError for any other that is
        broken."""
        try:
            text = read_file(self.metrics_path).decode(errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(self.metrics_path, error, "Remove it, and train again.") from error
        lines = text.split("\n")
        records = []
        for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is incomplete
            try:
                records.append(read_metrics_line(line))
            except ValueError as error:
                raise RecordError(
                    f"{self.metrics_path}:{number} is {error}: {line[:80]!r}. "
                    "Delete that line; the run goes on from its checkpoint."
                ) from error
        return records

    def keep_metrics_until(self, step: int) -> None:
        """Drop what was logged after ``step``, the checkpoint that training resumes from."""
        kept = [record for record in self.read_metrics() if record["step"] <= step]
        write_atomically(self.metrics_path, "".join(json.dumps(record) + "\n" for record in kept).encode())

    def append_metrics(self, record: dict[str, Any]) -> None:
        append_record(self.metrics_path, record)

    def last_metrics(self) -> dict[str, Any]:
        """Merge the latest logged values over the file's last lines; {} where there are none yet."""
        try:
            lines = read_tail(self.metrics_path, _TAIL_BYTES).split(b"\n")[:-1]
        except OSError:  # not there yet, or unreadable, which the run itself will say
            return {}
        merged: dict[str, Any] = {}
        for line in lines:
            with contextlib.suppress(ValueError):  # the first line of the window may be cut; others, the run will name
                merged.update(read_metrics_line(line.decode(errors="replace")))
        return merged
