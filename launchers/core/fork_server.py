"""Runs that start at once: forked by a process that has torch, timm and DeepSpeed loaded, which takes seconds.

    local pool -> ForkServer -> multiprocessing's fork server, which imports ``preload`` -> ForkedRun

A run has a session of its own, dies with the grid, and goes on when the fork server dies. No GPU may be touched in that
server: what is forked after that could use none. The grid itself imports no torch here.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from multiprocessing import forkserver, parent_process, resource_tracker
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import ModuleType
from typing import Self

from suite import execute
from suite.base.exit_codes import Exit
from suite.base.files import open_to_append
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

RESOURCES_VARIABLE = "FORK_SERVER_RESOURCES"  # set for the server alone, which loads the libraries when it is there
_PRELOAD = "launchers.core.preload"
_NUM_PRELOADS = 100  # its name so many times: room in the server's command line for the one that a run shows
_MAX_LOADING_S = 600.0
_PID_BYTES = 8  # as multiprocessing sends it
_UNKNOWN_STATUS = 255
_ENDED, STOPPED = ("", "Z", "X"), ("T", "t")  # states of a process
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46  # places in /proc/<pid>/stat, counted from 0 behind the command's name


class ForkedRun(ForkServerProcess):
    """A run in a process that the fork server has forked: as much of ``subprocess.Popen`` as a pool needs."""

    pid: int

    def __init__(self, path: Path, resources: Resources, variables: Mapping[str, str]) -> None:
        super().__init__()
        self._path, self._resources, self._variables = path, resources, dict(variables)

    def run(self) -> None:
        """Train in the forked process, and end with the run's exit status."""
        os.setsid()
        _die_with_the_grid()
        with open_to_append(RunDirectory(self._path).log_path) as log:
            send_output_to(log.fileno())
        os.environ |= self._variables
        with contextlib.suppress(OSError, IndexError, ValueError):
            _show_command("-m", "suite.execute", str(self._path), "--resources", self._resources.model_dump_json())
        sys.exit(execute.run(self._path, self._resources))

    def poll(self) -> int | None:
        """Its exit status, negative where a signal killed it; None while it runs.

        A dead server can report no exit status: multiprocessing then says 255 at once, though the run goes on.
        """
        code = self.exitcode
        return None if code == _UNKNOWN_STATUS and process_state(self.pid) not in _ENDED else code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to it, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """multiprocessing's fork server with the libraries loaded, for the device and threads that the resources of every
    run name, from when it is made until the block ends."""

    def __init__(self, resources: Resources, environment: Mapping[str, str]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignores it can wait for no process
        self._resources = resources
        self._environment = {**environment, RESOURCES_VARIABLE: resources.model_dump_json(exclude_defaults=True)}
        self._runs: list[ForkedRun] = []
        self._first_pid: int | None = None
        self._give_up_at = time.monotonic() + _MAX_LOADING_S
        self.is_alive = False  # whether it is loaded, and has always forked what it was asked to
        _stop_server()  # multiprocessing has one for each process; another's has other libraries
        forkserver.set_forkserver_preload([_PRELOAD] * _NUM_PRELOADS)
        with contextlib.suppress(OSError):
            self._start_server()
            self._first_pid, input_of_process = forkserver.connect_to_new_process([])  # forked once all is loaded
            os.close(input_of_process)  # it has nothing to do, and ends

    def _start_server(self) -> None:
        """Start the server, with the environment of runs and out of Ctrl-C's reach."""
        resource_tracker.ensure_running()
        ours = dict(os.environ)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            _replace_environment(self._environment)
            forkserver.ensure_running()
        finally:
            _replace_environment(ours)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def is_loading(self) -> bool:
        """Whether it still imports; a run that waits for that costs less than one that imports too."""
        if self._first_pid is None:
            return False
        has_come = bool(select.select([self._first_pid], [], [], 0)[0])
        if not has_come and time.monotonic() < self._give_up_at:
            return True
        self.is_alive = has_come and bool(os.read(self._first_pid, _PID_BYTES))
        os.close(self._first_pid)
        self._first_pid = None
        return False

    def fork(self, path: Path, variables: Mapping[str, str]) -> ForkedRun | None:
        """Start the run of a folder, with environment variables of its own; None if the server cannot fork it."""
        self._runs = [run for run in self._runs if run.poll() is None]  # each keeps two descriptors open
        if process_state(_server_pid()) in (*_ENDED, *STOPPED):  # multiprocessing would start another, or wait for ever
            self.is_alive = False
            return None
        run, main = ForkedRun(path, self._resources, variables), sys.modules["__main__"]
        try:
            sys.modules["__main__"] = ModuleType("__main__")  # else the child imports ours, and all that it imports
            run.start()
        except (OSError, EOFError):  # EOFError: the server has ended
            self.is_alive = False
            return None
        finally:
            sys.modules["__main__"] = main
        self._runs.append(run)
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """End the server and the runs that are left: Python waits for them before it exits."""
        for run in self._runs:
            run.send_signal(signal.SIGKILL)
        _stop_server()


def _stop_server() -> None:
    if (pid := _server_pid()) is not None:
        os.kill(pid, signal.SIGKILL)  # it may still load
        forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _server_pid() -> int | None:
    pid: int | None = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return pid


def process_state(pid: int | None) -> str:
    """The state of a process, such as "S", "T" if it is stopped or "Z" if it has ended; "" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return ""


def _replace_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _die_with_the_grid() -> None:
    """Ask the kernel to kill this process when the grid, the only writer of the sentinel's pipe, is gone."""
    grid = parent_process()
    assert grid is not None
    fcntl.fcntl(grid.sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(grid.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(grid.sentinel, fcntl.F_SETFL, fcntl.fcntl(grid.sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    if not grid.is_alive():  # it has died meanwhile
        os._exit(Exit.FAILED)


def send_output_to(file: int) -> None:
    """Let this process write its output to an open file."""
    os.dup2(file, 1)
    os.dup2(file, 2)


def _show_command(*arguments: str) -> None:
    """Show in ps and top what this process is: the command that trains the same run, in place of the server's."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    command, room = "\0".join([sys.executable, *arguments]), end - start
    ctypes.memmove(start, os.fsencode(command)[: room - 1].ljust(room, b"\0"), room)
