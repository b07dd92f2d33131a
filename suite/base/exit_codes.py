"""How a process of ours ends: a run's, a job's, the grid's."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses, the same wherever they are read."""

    DONE = 0
    FAILED = 1
    MISUSE = 2  # of the command line
    ELSEWHERE = 75  # EX_TEMPFAIL: a run that another process holds, or that has ended in a way only a retry undoes
    BLOCKED = 77  # a run that it depends on has no result
    INTERRUPTED = 130  # asked to stop; the same command goes on from the checkpoint
