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
    what_next = "The training is not touched; the same command tracks what is missing"
    return f"--track {tracker} was dropped: {reason}. {what_next}"


@contextlib.contextmanager
def following(
    trackers: Iterable[TrackerName],
    store: Path,
    suite: str,
    profile: str,
    runs: Iterable[str],
    say: Callable[[str], None],
    last_s: float = _LAST_S,
) -> Iterator[Callable[[], None]]:
    """Track what the block inside trains; yields what reports followers that have failed, to be called now and then.

    Args:
        suite, profile: words for the suite, as ``get_suite`` takes them, and its profile, for the paper's numbers.
        runs: ids of the experiments; a finished run is tracked, too, unless it has been.
        say: function that is told of a tracker that fails, once.
    """
    followers = list[Follower]()
    about = {"store": str(store.absolute()), "suite": suite, "profile": profile, "runs": tuple(runs)}
    for name in trackers:
        request = FollowRequest(tracker=name, timeout_s=_TIMEOUT_S, **about)
        try:
            followers.append(Follower(request))
        except OSError as error:  # no room for a file or a process
            say(format_dropped(name, str(error)))

    def report() -> None:
        for follower in list(followers):
            if failure := follower.find_failure():
                followers.remove(follower)
                say(failure)

    try:
        yield report
    finally:
        deadline = time.monotonic() + last_s
        for follower in followers:  # all at once
            follower.end_input()
        for follower in followers:
            if failure := follower.finish(max(0.1, deadline - time.monotonic())):
                say(failure)
