"""The starter's side of ``--track``: a process for each tracker, told of and dropped when it fails."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchers.tracking.follower import Request
from suite.spec import TrackerName

_LAST_S = 60.0  # for what is left when the training has ended
_PATIENCE_S = 60.0  # with one look at one run
_DEATH_S = 5.0  # for a killed process to be gone; one that waits for a dead file system is left to itself


class Follower:
    """A process that follows runs into one tracker."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", "launchers.tracking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            text=True,
            start_new_session=True,
        )
        self._sender = threading.Thread(target=self._order, daemon=True)  # a long order waits until it is read
        self._sender.start()

    def _order(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, and will be found so
            self._process.stdin.write(self.request.model_dump_json() + "\n")
            self._process.stdin.flush()

    def find_failure(self) -> str:
        """Say why it has ended, if it has."""
        status = self._process.poll()
        return "" if not status else self._describe(status)

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        assert self._process.stdin is not None
        self._sender.join(_PATIENCE_S)
        if self._sender.is_alive():  # it does not read, and will not
            self._process.kill()
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def finish(self, patience_s: float) -> str:
        """Let it pass on what is left; says why it could not, if so."""
        self.end_input()
        try:
            status = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_DEATH_S)
            return self._tell(f"it has not taken the last lines within {patience_s:.3g} s")
        return self._describe(status) if status else ""

    def _describe(self, status: int) -> str:
        if status == -signal.SIGALRM:
            return self._tell(f"it has not answered for {self.request.patience_s:g} s")
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return self._tell(lines[-1] if lines else f"its process ended with status {status}")

    def _tell(self, reason: str) -> str:
        return tell_dropped(self.request.tracker, reason)


def tell_dropped(tracker: TrackerName, reason: str) -> str:
    """Say that a tracker is no more, and what to do."""
    return (
        f"--track {tracker} was dropped: {reason}. The training is not touched; the same command tracks what is missing"
    )


class Followers:
    """Those of one training. ``report`` is to be called every now and then."""

    def __init__(self, followers: Iterable[Follower], say: Callable[[str], None]) -> None:
        self._followers, self._say = list(followers), say

    def report(self) -> None:
        """Tell once of each that has failed, and drop it."""
        for follower in list(self._followers):
            if failure := follower.find_failure():
                self._followers.remove(follower)
                self._say(failure)

    def finish(self, patience_s: float) -> None:
        """Let all of them pass on what is left at once, and tell of those that could not in time."""
        deadline = time.monotonic() + patience_s
        for follower in self._followers:
            follower.end_input()
        for follower in self._followers:
            if failure := follower.finish(max(0.1, deadline - time.monotonic())):
                self._say(failure)


@contextlib.contextmanager
def following(
    trackers: Iterable[TrackerName],
    store: Path,
    suite: str,
    profile: str,
    runs: Iterable[str],
    say: Callable[[str], None],
    last_s: float = _LAST_S,
) -> Iterator[Followers]:
    """Track what the block inside trains.

    Args:
        trackers: their names.
        store: the run store.
        suite: as ``get_suite`` takes it.
        profile: of it, for the paper's numbers.
        runs: their experiments' ids; of those that have finished, too, what is not tracked yet is.
        say: is told of a tracker that fails, once.
        last_s: seconds for what is left at the end.
    """
    names, place, followers = tuple(runs), str(store.absolute()), []
    for name in trackers:
        try:
            order = Request(tracker=name, store=place, suite=suite, profile=profile, runs=names, patience_s=_PATIENCE_S)
            followers.append(Follower(order))
        except OSError as error:  # no room for a file or a process
            say(tell_dropped(name, str(error)))
    found = Followers(followers, say)
    try:
        yield found
    finally:
        found.finish(last_s)
