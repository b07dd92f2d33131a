"""When checkpoints are due: every so often, and less often where they would take more than 1 % of the time.

On a disk that stalls the first time, or where a checkpoint takes over 18 seconds, half an hour is the longest pause.

The loop asks before each, and tells how long it took: that depends on the size of the state and on the disk.
"""

import contextlib
import time
from collections.abc import Iterator

_MOST_SHARE = 0.01  # of a training's time
_LEAST_S = 1.0  # shorter intervals, as tests ask for, are kept to
_MOST_S = 1800.0  # at most this much training is at stake, unless longer intervals are asked for


def pause_s(every_s: float, takes_s: float) -> float:
    """Seconds from the end of one checkpoint to the next, at least ``every_s``, for a checkpoint that takes
    ``takes_s``."""
    if every_s < _LEAST_S:
        return every_s
    return max(every_s, min(_MOST_S, takes_s * (1 / _MOST_SHARE - 1)))


class CheckpointTimes:
    """The checkpoints of one attempt, at least ``every_s`` seconds apart."""

    def __init__(self, every_s: float) -> None:
        self._every_s = self._pause_s = every_s
        self._saved_at = time.monotonic()
        self._fastest_s = float("inf")  # so that a disk which stalls later puts nothing off

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._saved_at >= self._pause_s

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Time a checkpoint, and put the next one off for as long as that is worth."""
        began = time.monotonic()
        yield
        self._saved_at = time.monotonic()
        self._fastest_s = min(self._fastest_s, self._saved_at - began)
        self._pause_s = pause_s(self._every_s, self._fastest_s)
