"""A function over many tasks in several processes, results in the order of the tasks and few of them waiting."""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import TypeVar

from suite.errors import DataError

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD_PER_WORKER = 4


def map_in_order(function: Callable[[Task], Result], tasks: Iterable[Task], num_workers: int) -> Generator[Result]:
    """The results of ``function``, in order.

    Args:
        function: importable by name, so that a fresh process finds it.
        tasks: read as they are needed.
        num_workers: processes; with one, the work is done here.

    Raises:
        DataError: if a process was killed, and what ``function`` raises.
    """
    if num_workers == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks
    pool = ProcessPoolExecutor(num_workers, context, initializer=_start_worker)
    waiting: collections.deque[Future[Result]] = collections.deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) > num_workers * _TASKS_AHEAD_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process was killed, perhaps for want of memory. Run the same command with fewer --workers: it "
            "goes on where this one ended."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: a pool's workers would wait for a killed parent for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None, "this runs in a worker"

    def end_with_parent(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, args=(parent.sentinel,), daemon=True).start()
