"""The starter's side of ``--track``: a sidecar for each tracker, which is reported and dropped when it fails."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchers.core.sidecar import Sidecar
from launchers.tracking.follower import FollowRequest
from suite.spec.resources import TrackerName

_LAST_S = 60.0  # for what is left when the training has ended
_TIMEOUT_S = 60.0  # for one line of one run


class Follower(Sidecar):
    """The sidecar that follows runs into one tracker."""

    def __init__(self, request: FollowRequest) -> None:
        super().__init__("launchers.tracking.follower", json.dumps(request.model_dump(mode="json")))
        self._request = request

    def find_failure(self) -> str:
        """Say why it has ended, if it has failed."""
        status = self.process.poll()
        if not status:
            return ""
        is_timeout = status == -signal.SIGALRM
        reason = f"it has not answered for {self._request.timeout_s:g} s" if is_timeout else self.stderr_tail()
        return format_dropped(self._request.tracker, reason or f"its process ended with status {status}")

    def finish(self, timeout_s: float) -> str:
        """Let it pass on what is left; says why it could not, if so."""
        self.end_input()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            reason = f"it has not taken the last lines within {timeout_s:.3g} s"
            return format_dropped(self._request.tracker, reason)
        return self.find_failure()


def format_dropped(tracker: TrackerName, reason: str) -> str:
    """Say that a tracker is no more, and what to do."""
    return (
        f"--track {tracker} was dropped: {reason}. The training is not touched; the same command tracks what is missing"
    )


class Followers(list[Follower]):
    """The followers of one training, and the function that reports each failure once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def report(self) -> None:
        """Report each that has failed, and drop it; to be called every now and then."""
        for follower in list(self):
            if failure := follower.find_failure():
                self.remove(follower)
                self._say(failure)

    def finish(self, timeout_s: float) -> None:
        """Let all of them pass on what is left at once, and report those that could not in time."""
        deadline = time.monotonic() + timeout_s
        for follower in self:
            follower.end_input()
        for follower in self:
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
        suite, profile: as ``get_suite`` takes them, for the paper's numbers.
        runs: ids of the experiments; a finished run is tracked, too, unless it has been.
        say: function that reports a tracker that fails, once.
        last_s: seconds for what is left at the end.
    """
    followers = Followers(say)
    about = {"store": str(store.absolute()), "suite": suite, "profile": profile, "runs": tuple(runs)}
    for name in trackers:
        request = FollowRequest(tracker=name, timeout_s=_TIMEOUT_S, **about)
        try:
            followers.append(Follower(request))
        except OSError as error:  # no room for a file or a process
            say(format_dropped(name, str(error)))
    try:
        yield followers
    finally:
        followers.finish(last_s)
