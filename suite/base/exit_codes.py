"""How a process of ours ends: a run's, a job's, the grid's."""

import signal
from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses, the same wherever they are read."""

    DONE = 0
    FAILED = 1
    MISUSE = 2  # of the command line
    LOCKED = 75  # EX_TEMPFAIL: another process has locked the run, or only a retry starts it
    BLOCKED = 77  # a run that it depends on has no result
    INTERRUPTED = 130  # asked to stop; the same command goes on from the checkpoint


_CAUSES = {
    signal.SIGKILL: "kill, or out of memory",
    signal.SIGABRT: "compiled code gave up, as where a library does not fit PyTorch; the log may name it",
    signal.SIGSEGV: "compiled code failed, as where a library does not fit PyTorch",
}


def describe_signal(number: int) -> str:
    """Name the signal that ended a process, and what usually sends it."""
    if number not in set(signal.Signals):
        return f"signal {number}"
    name = signal.Signals(number)
    return f"{name.name} ({_CAUSES[name]})" if name in _CAUSES else name.name
