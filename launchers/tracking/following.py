"""The starter's side of ``--track``: a process for each tracker, told of and dropped when it fails."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchers.core.sidecar import Helper
from launchers.tracking.follower import FollowRequest
from suite.spec.resources import TrackerName

_LAST_S = 60.0  # for what is left when the training has ended
_PATIENCE_S = 60.0  # with one line of one run


class Follower:
    """A process that follows runs into one tracker."""

    def __init__(self, request: FollowRequest) -> None:
        self._request = request
        self._helper = Helper("launchers.tracking", json.dumps(request.model_dump(mode="json")))

    def find_failure(self) -> str:
        """Say why it has ended, if it has."""
        status = self._helper.status
        return self._describe(status) if status else ""

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        self._helper.end_input()

    def finish(self, patience_s: float) -> str:
        """Let it pass on what is left; says why it could not, if so."""
        self.end_input()
        try:
            status = self._helper.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._helper.kill()
            reason = f"it has not taken the last lines within {patience_s:.3g} s"
            return tell_dropped(self._request.tracker, reason)
        return self._describe(status) if status else ""

    def _describe(self, status: int) -> str:
        is_silent = status == -signal.SIGALRM
        reason = f"it has not answered for {self._request.patience_s:g} s" if is_silent else self._helper.last_words
        return tell_dropped(self._request.tracker, reason or f"its process ended with status {status}")


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
            order = FollowRequest(
                tracker=name, store=place, suite=suite, profile=profile, runs=names, patience_s=_PATIENCE_S
            )
            followers.append(Follower(order))
        except OSError as error:  # no room for a file or a process
            say(tell_dropped(name, str(error)))
    found = Followers(followers, say)
    try:
        yield found
    finally:
        found.finish(last_s)
