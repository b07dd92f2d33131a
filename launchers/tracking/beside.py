"""The starter's side of ``--track``: a process for each tracker, told of and dropped when it fails."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchers.tracking.follower import Request
from suite.spec import TrackerName

_LAST_S = 60.0  # for what is left when the training has ended
_PATIENCE_S = 60.0  # with one call of a tracker


class Follower:
    """A process that follows runs into one tracker."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", "launchers.tracking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and will be found so
            self._process.stdin.write(request.model_dump_json() + "\n")
            self._process.stdin.flush()

    def find_failure(self) -> str:
        """Say why it has ended, if it has."""
        status = self._process.poll()
        return "" if not status else self._describe(status)

    def finish(self, patience_s: float) -> str:
        """Let it pass on what is left; says why it could not, if so."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            status = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return self._tell(f"it has not taken the last lines within {patience_s:g} s")
        return self._describe(status) if status else ""

    def _describe(self, status: int) -> str:
        if status == -signal.SIGALRM:
            return self._tell(f"it has not answered for {self._request.patience_s:g} s")
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return self._tell(lines[-1] if lines else f"its process ended with status {status}")

    def _tell(self, reason: str) -> str:
        return (
            f"--track {self._request.tracker} was dropped: {reason}. The training is not touched; "
            "the same command tracks what is missing"
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
        for follower in self._followers:
            if failure := follower.finish(patience_s):
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
    names = tuple(runs)
    found = Followers(
        (
            Follower(Request(tracker=t, store=str(store.absolute()), suite=suite, profile=profile, runs=names,
                             patience_s=_PATIENCE_S))
            for t in trackers
        ),
        say,
    )  # fmt: skip
    try:
        yield found
    finally:
        found.finish(last_s)
