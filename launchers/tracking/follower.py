"""The process that follows runs: their directories -> what is new in them -> one tracker.

It ends when its input does, which its starter holds open, or when the tracker takes longer than its timeout.
"""

import contextlib
import functools
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import filelock
from pydantic import PositiveFloat

from launchers.core.sidecar import NICER
from launchers.tracking.trackers import TRACKERS, TrackedRun, Tracker
from leaderboards.boards.layout import lay_out
from leaderboards.boards.metrics import read_metric
from suite.base.errors import RecordError
from suite.base.exit_codes import Exit
from suite.base.files import mark_of, open_file, read_file, write_atomically
from suite.base.frozen import Frozen
from suite.base.reading import read_metrics_line
from suite.papers import get_suite
from suite.spec.resources import TrackerName
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.store.run_store import experiments_folder

_EVERY_S = 2.0
_METRICS = ("top1_percent", "top5_percent", "best_top1_percent", "test_loss", "images_per_s", "device_hours")
Papers = Mapping[str, Mapping[str, float]]  # configuration -> metric -> the paper's number


class FollowRequest(Frozen):
    """The request to a follower. ``runs`` are ids; ``suite`` is as ``get_suite`` takes it."""

    tracker: TrackerName
    store: str
    suite: str
    profile: str
    runs: tuple[str, ...]
    timeout_s: PositiveFloat = 60.0


def main() -> int:
    """Follow until the input ends; an error, whatever it is, goes to the starter in one line."""
    request = FollowRequest.model_validate(json.loads(sys.stdin.readline()))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):  # meant for the training, whose end is still to come
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICER)
    try:
        _follow_all(request)
    except Exception as error:  # a tracker may raise what it likes
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return Exit.FAILED
    return Exit.DONE


def _follow_all(request: FollowRequest) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends this process wherever the tracker hangs
    papers = find_papers(request.suite, request.profile)
    restart_timer = functools.partial(signal.setitimer, signal.ITIMER_REAL, request.timeout_s)
    open_runs = [Following(request, name, papers, restart_timer) for name in request.runs]
    is_last = False
    while not is_last:
        is_last = bool(select.select([sys.stdin], [], [], _EVERY_S)[0])  # looked at before: all before it is read
        for run in open_runs:
            restart_timer()  # from here, and again from each line that the tracker has taken
            try:
                run.catch_up()
            except RecordError as error:  # its own files, which its grid names, too; the others go on
                print(f"{run.name} is not tracked: {error}", file=sys.stderr)
                run.close()
                run.is_finished = True
            if is_last:
                run.close()
            signal.setitimer(signal.ITIMER_REAL, 0)
        open_runs = [run for run in open_runs if not run.is_finished]


def find_papers(suite_name: str, profile_name: str) -> Papers:
    """The paper's numbers for each experiment, by the metric that they are compared with."""
    suite = get_suite(suite_name)
    profile = suite.profile(profile_name)
    found: dict[str, dict[str, float]] = {}
    for table in suite.tables if not profile.other_dataset else ():
        entries = suite.entries_of(profile, table)
        paper = lay_out(table, entries)
        for entry in entries:
            for column, metric in entry.columns.items():
                if (value := paper.value(entry.row, column)) is not None:
                    found.setdefault(entry.experiment.configuration_id, {}).setdefault(metric, value)
    return found


class Following:
    """One run on its way into a tracker. Of several followers of a run, one has it; its death lets it go.

    ``keepalive`` is called for every line that the tracker has taken, and before it is closed.
    """

    def __init__(self, request: FollowRequest, name: str, papers: Papers, keepalive: Callable[[], object]) -> None:
        self._keepalive = keepalive
        self._run = RunDirectory(experiments_folder(Path(request.store)) / name)
        self.name, self._papers = name, papers
        self._open, self._tags = TRACKERS[request.tracker], (request.suite, request.profile)
        folder = Path(request.store, "tracking", request.tracker, name)
        self._folder, self._mark = folder, folder.with_name(f"{folder.name}.json")
        self._lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"))
        self._tracker: Tracker | None = None
        self._file: BufferedReader | None = None  # kept open, so that no other gets its number
        self._sent: dict[str, int] = {}  # the last step by name
        self._step = 0
        self.is_finished = False

    def catch_up(self) -> None:
        """Pass on what is new. Nothing where the run has not begun, or another process follows it."""
        ended = json.dumps(mark[:2]).encode() if (mark := mark_of(self._run.result_path)) else b""
        with contextlib.suppress(OSError):  # what cannot be read is no mark: the tracker takes the result again
            self.is_finished = bool(ended) and read_file(self._mark) == ended
        if self.is_finished:
            self.close()
        elif (ended or self._run.metrics_path.exists()) and self._is_ours():
            result = self._find_result() if ended else None  # first: its metrics are complete then
            self._pass_on_metrics()
            if result is not None:
                self._begun().end(self._step, self._summarize(result))
                self.close()
                write_atomically(self._mark, ended)
                self.is_finished = True

    def close(self) -> None:
        """Let the run go; whoever follows it next begins anew."""
        self._close_tracker()
        self._lock.release()

    def _is_ours(self) -> bool:
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(filelock.Timeout):
            if not self._lock.is_locked:
                self._lock.acquire(timeout=0)
        return self._lock.is_locked

    def _find_result(self) -> Result | None:
        """The result, if it holds."""
        with contextlib.suppress(RecordError):
            status = find_run_status(self._run, self._run.read_experiment())
            return status.result if status.state == "done" else None
        return None

    def _pass_on_metrics(self) -> None:
        has_new = False
        for line in self._read_new():
            self._keepalive()
            step = self._step = line["step"]
            values = flatten({name: value for name, value in line.items() if name not in ("step", "num_steps")})
            known = self._begun().known_until
            if new := {name: value for name, value in values if step > self._sent.get(name, known)}:
                self._begun().log(step, new)
                self._sent |= dict.fromkeys(new, step)
                has_new = True
        if has_new:
            self._begun().flush()  # once, however many lines there were

    def _read_new(self) -> Iterator[dict[str, Any]]:
        """The lines since the last look; all of them where a run that was resumed has written the file anew."""
        try:
            number = self._run.metrics_path.stat().st_ino
            if self._file is None or os.fstat(self._file.fileno()).st_ino != number:
                self._close_tracker()
                self._file, self._sent = open_file(self._run.metrics_path), {}
            assert self._file is not None
            at = self._file.tell()
            data = self._file.read()
            complete = data[: data.rfind(b"\n") + 1]
            self._file.seek(at + len(complete))
        except OSError:  # it trains nothing, or cannot be read, which the run itself says
            return
        for text in complete.splitlines():
            with contextlib.suppress(ValueError):  # damage, which the run itself will name
                yield read_metrics_line(text.decode(errors="replace"))

    def _close_tracker(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._tracker is not None:
            tracker, self._tracker = self._tracker, None
            self._keepalive()
            tracker.close()

    def _begun(self) -> Tracker:
        if self._tracker is None:
            config = self._run.read_experiment().model_dump(mode="json")
            self._tracker = self._open(TrackedRun(self.name, self._folder, config, self._tags, self._keepalive))
        return self._tracker

    def _summarize(self, result: Result) -> dict[str, float]:
        papers = self._papers.get(result.experiment.configuration_id, {})
        ours = {metric: read_metric(result, metric) for metric in dict.fromkeys((*_METRICS, *papers))}
        shown = {f"result/{metric}": float(value) for metric, value in ours.items() if value is not None}
        return shown | {f"paper/{metric}": value for metric, value in papers.items()}


def flatten(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers by name; those of a list, such as of layers and heads, by their places: ``nonlocality/2/0``."""
    for name, value in values.items():
        if isinstance(value, list):
            yield from flatten({f"{name}/{place}": one for place, one in enumerate(value)})
        elif isinstance(value, int | float):
            yield name, float(value)


if __name__ == "__main__":
    sys.exit(main())
