"""A run's signs of life, beside its metrics: what its first rank is doing, and how long that took at most.

    training -> heartbeat.json -> the process that watches beside the run, and the status

The watchdog learns a run's pace from it. A run hangs once it is silent for ten times the slowest, and for a minute.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from suite.base.files import open_file
from suite.base.frozen import Frozen
from suite.base.reading import read_model
from suite.store.run_directory import RunDirectory

Phase = Literal["start", "staging", "training", "evaluation", "probe", "checkpoint", "end"]

_TIMES_THE_SLOWEST = 10
LEAST_TIMEOUT_S = 60.0
UNKNOWN_TIMEOUT_S = 1800.0  # with what was not done once before: starting, the first evaluation
_EVERY_S = 1.0  # between two beats of steps
_SIZE = 512  # bytes: written at one place and at once, so that a shared file system shows no half of it
_LONGEST_LOOK_S = 5.0  # a watch that was itself stopped, with its run or by a suspended machine, has seen nothing
_STALLED_AFTER_S = 15.0  # a status says so long before anything is ended
_WORDS: dict[Phase, str] = {
    "start": ", at its start",
    "staging": ", in copying its images",
    "training": "",
    "evaluation": ", in an evaluation",
    "probe": ", in a look at attention",
    "checkpoint": ", in a checkpoint",
    "end": ", at its end",
}


class Beat(Frozen):
    """One sign of life.

    ``number`` counts them, ``pid`` tells attempts apart, and ``slowest_s`` holds what a step, an evaluation, a look
    at attention and a checkpoint took at most in this attempt. ``at`` is in seconds since 1970, which a copy of the
    file keeps; 0 = not recorded.
    """

    number: int
    pid: int
    phase: Phase
    step: int = 0
    slowest_s: dict[Phase, float] = Field(default_factory=dict)
    at: float = Field(0.0, ge=0, le=1e11)

    @property
    def timeout_s(self) -> float:
        """Seconds without the next beat after which the run hangs."""
        slowest = self.slowest_s.get(self.phase)
        return UNKNOWN_TIMEOUT_S if slowest is None else max(LEAST_TIMEOUT_S, _TIMES_THE_SLOWEST * slowest)

    def describe(self, stalled_s: float) -> str:
        """Describe a stall, such as "no step for 75 s; the slowest took 1.2 s"."""
        slowest = self.slowest_s.get(self.phase)
        pace = "" if slowest is None else f"; the slowest took {slowest:{',.0f' if slowest >= 10 else '.2g'}} s"
        return f"no step for {stalled_s:.0f} s{_WORDS[self.phase]}{pace}"


class Heartbeat:
    """The first rank's side. The other ranks have one without a run, which writes nothing."""

    def __init__(self, run: RunDirectory | None) -> None:
        self._run = run
        self._phase: Phase = "start"
        self._slowest_s: dict[Phase, float] = {}
        self._number = self._step = 0
        self._since = self._written_at = time.monotonic()
        self._write()

    def begin(self) -> None:
        """Note that steps follow: the first one takes its time from here."""
        self._since = time.monotonic()

    def beat(self, step: int) -> None:
        """Note that ``step`` steps are done; written once a second at most."""
        now = time.monotonic()
        self._note("training", now - self._since)
        self._phase, self._step, self._since = "training", step, now
        if now - self._written_at >= _EVERY_S or self._number == 1:
            self._write()

    @contextlib.contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Count what is inside apart from the steps."""
        before, self._phase = self._phase, phase
        self._write()
        began = time.monotonic()
        yield
        self._note(phase, time.monotonic() - began)
        self._phase, self._since = before, time.monotonic()
        self._write()

    def go_on(self) -> None:
        """Note that what takes long goes on; written once a second at most."""
        if time.monotonic() - self._written_at >= _EVERY_S:
            self._write()

    def end(self) -> None:
        """Note that nothing is left but to write the result."""
        self._phase = "end"
        self._write()

    def _note(self, phase: Phase, seconds: float) -> None:
        self._slowest_s[phase] = max(seconds, self._slowest_s.get(phase, 0.0))

    def _write(self) -> None:
        if self._run is None:
            return
        self._number += 1
        self._written_at = time.monotonic()
        known = {"phase": self._phase, "step": self._step, "slowest_s": self._slowest_s}
        beat = Beat(number=self._number, pid=os.getpid(), at=time.time(), **known)
        with contextlib.suppress(OSError):  # a full disk or a lost folder, which the next metrics line will report
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(self._run.heartbeat_path, flags, 0o666), "wb", buffering=0) as file:
                file.write(beat.model_dump_json().encode().ljust(_SIZE))


class Watchdog:
    """Looks at a run's heartbeat from beside it, by a clock of its own.

    Args:
        run: run whose attempt has not begun yet: what is there now is of an earlier one.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._before = self._seen = read_beat(run)
        self._looked_at = time.monotonic()
        self._stalled_s = 0.0

    def find_hang(self, more_s: float = 0.0) -> str:
        """Say why the run counts as hanging, or "" while it lives; to be called every few seconds.

        ``more_s`` seconds are waited beyond the usual.
        """
        now, beat = time.monotonic(), read_beat(self._run)
        self._stalled_s += min(now - self._looked_at, _LONGEST_LOOK_S)
        self._looked_at = now
        if beat != self._seen:
            self._seen, self._stalled_s = beat, 0.0
        if beat is None or beat == self._before:
            beat = Beat(number=0, pid=0, phase="start")
        if self._stalled_s <= beat.timeout_s + more_s:
            return ""
        return beat.describe(self._stalled_s)


def read_beat(run: RunDirectory) -> Beat | None:
    """Read the latest beat; None where there is none that can be read."""
    try:
        with open_file(run.heartbeat_path) as file:
            return read_model(Beat, file.read(_SIZE))
    except (OSError, ValueError):
        return None


def find_stall(run: RunDirectory) -> str:
    """Say for how long a run that counts as running has stalled; "" where it keeps its pace.

    For a reader on any machine: by the file's date, since other clocks than this one may be off by seconds.
    """
    beat = read_beat(run)
    if beat is None:
        return ""
    try:
        stalled_s = time.time() - run.heartbeat_path.stat().st_mtime
    except OSError:
        return ""
    slowest = beat.slowest_s.get(beat.phase)
    usual_s = LEAST_TIMEOUT_S if slowest is None else max(_STALLED_AFTER_S, 3 * slowest)
    return beat.describe(stalled_s) if stalled_s > usual_s else ""
