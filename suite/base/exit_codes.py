"""How a process of ours ends: a run's, a job's, the grid's."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses, the same wherever they are read."""

    DONE = 0
    FAILED = 1
    MISUSE = 2  # of the command line
    LOCKED = 75  # EX_TEMPFAIL: another process has locked the run, or only a retry starts it
    BLOCKED = 77  # a run that it depends on has no result
    INTERRUPTED = 130  # asked to stop; the same command goes on from the checkpoint
