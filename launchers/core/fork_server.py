"""The process that has torch, timm and DeepSpeed loaded, and forks a run whenever the grid asks for one.

    python -m launchers.core.fork_server RESOURCES ROOM_FOR_TITLES     started by ``forked_run``, a socket is its input

Each run is forked twice: the process between ends at once, so that the run becomes a child of the grid. It has a
session of its own, dies with the grid, and stays when this process dies. No GPU may be touched here: what is forked
after that could use none. ``launchers.slurm.job`` forks the runs of a SLURM job with the same steps.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from suite.base.exit_codes import Exit
from suite.execute import die_with_parent, run
from suite.spec.resources import WAITING_THREADS, Resources

_LONGEST_REQUEST = 1 << 16  # bytes
_ARGUMENTS_START, _ARGUMENTS_END = 47, 48  # places in /proc/<pid>/stat, counted from 0


def main() -> int:
    """Load the libraries, then serve until the grid, the parent, closes its end of the socket."""
    die_with_parent()
    grid, resources = os.getppid(), Resources.model_validate_json(sys.argv[1])
    import_training(resources)
    gc.collect()
    gc.freeze()  # else each run's first collection would write on, and so copy, all that it shares with the others
    with socket.socket(fileno=os.dup(0)) as requests:
        requests.send(b"+")
        while True:
            request, logs, *_ = socket.recv_fds(requests, _LONGEST_REQUEST, 1)
            if not request:
                return Exit.DONE
            _fork_twice(grid, lambda: _become_run(json.loads(request), logs[0], requests, resources))  # noqa: B023  called here only
            os.close(logs[0])


def import_training(resources: Resources) -> None:
    """Import, before the first fork, what every run needs: it takes seconds, and shows what the machine lacks.

    Raises:
        RunError: no GPU where one is needed.
        ImportError, OSError: a library that is not there, or is damaged.
    """
    os.environ.setdefault(*WAITING_THREADS)
    import suite.training.loop
    import suite.training.untrained  # noqa: F401
    from suite.training.distributed import check_device, preload

    preload(resources)
    check_device(resources)


def end_with(train: Callable[[], int]) -> NoReturn:
    """Carry ``train`` out in a forked process, and end with its status. What fails it is in its log."""
    status: int = Exit.FAILED
    try:
        status = train()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def log_to(log: int) -> None:
    """Let a forked process write its output to an open file."""
    os.dup2(log, 1)
    os.dup2(log, 2)


def _fork_twice(grid: int, train: Callable[[], int]) -> None:
    import torch

    assert not torch.cuda.is_initialized(), "the process that forks runs must not touch a GPU"
    between = os.fork()
    if between == 0:
        try:
            _fork_once_more(grid, os.getpid(), train)
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(between, 0)[1]:
        raise OSError("no second process could be forked")  # ends the server: the run starts without it


def _fork_once_more(grid: int, between: int, train: Callable[[], int]) -> None:
    if os.fork() == 0:
        while os.getppid() == between:
            time.sleep(0.001)
        die_with_parent()
        if os.getppid() == grid:  # else it has died meanwhile
            end_with(train)
        os._exit(0)


def _become_run(request: dict[str, Any], log: int, requests: socket.socket, resources: Resources) -> int:
    """Train as the grid's child, in a session of its own; returns the exit status."""
    os.setsid()
    log_to(log)
    requests.send(str(os.getpid()).encode())
    requests.close()
    os.close(log)
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
    os.environ |= request["variables"]
    with contextlib.suppress(OSError, IndexError, ValueError):
        _set_title(f"{sys.executable}\0-m\0suite.execute\0{request['run']}\0--resources\0{sys.argv[1]}")
    return run(Path(request["run"]), resources)


def _set_title(title: str) -> None:
    """Show in ps and top what this process is: the command that trains the same run, in place of the server's."""
    start, end = _place_of_arguments()
    room = end - start
    ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)


def _place_of_arguments() -> tuple[int, int]:
    name_and_before, _, fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
    places = [*name_and_before.split(" ", 1), *fields.split()]
    return int(places[_ARGUMENTS_START]), int(places[_ARGUMENTS_END])


if __name__ == "__main__":
    sys.exit(main())
