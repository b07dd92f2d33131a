"""Runs that start at once: forked by a process that has the libraries loaded, ``launchers.core.fork_server``. No torch.

    local pool -> ForkServer -> that process -> a run, which is this process's own child

Importing torch, timm and DeepSpeed takes seconds of a core, a fork of what is imported milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Self

from suite.spec.resources import Resources

_TITLE_ROOM = " " * 4096  # runs write their own command line over the server's, for ps
_PATIENCE_S = 60.0  # with an answer that takes milliseconds
_MOST_LOADING_S = 600.0
_SET_CHILD_SUBREAPER = 36  # prctl's


class ForkServer:
    """A process that forks runs, from when it is made until ``close``.

    Args:
        resources: of every run; libraries are loaded for their device and threads.
        environment: of every run, as far as it has nothing of its own.
    """

    def __init__(self, resources: Resources, environment: Mapping[str, str]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignores it can wait for no run
        _adopt_orphans(True)  # a run whose parent has gone on is ours, as if we had made it
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "launchers.core.fork_server", resources.model_dump_json(exclude_defaults=True)]
        with theirs:
            self._process = subprocess.Popen(
                [*command, _TITLE_ROOM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,  # where it ends, a run of a Python of its own says why in its log
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        self._socket.settimeout(_PATIENCE_S)
        self._is_loaded = False
        self._give_up_at = time.monotonic() + _MOST_LOADING_S

    @property
    def is_loading(self) -> bool:
        """Whether it still imports; a run that waits for that costs less than one that imports too."""
        if self._is_loaded or self._process.poll() is not None or time.monotonic() > self._give_up_at:
            return False
        if select.select([self._socket], [], [], 0)[0]:
            self._is_loaded = bool(self._socket.recv(1))
        return not self._is_loaded

    @property
    def is_alive(self) -> bool:
        return self._is_loaded and self._process.poll() is None

    def fork(self, run: Path, log: BinaryIO, variables: Mapping[str, str]) -> ForkedProcess:
        """Start the run of a folder.

        Args:
            run: the folder.
            log: gets its output.
            variables: of its environment, beside those of all runs.

        Raises:
            OSError: the server is gone, or does not answer.
        """
        request = json.dumps({"run": str(run), "variables": dict(variables)}).encode()
        try:
            socket.send_fds(self._socket, [request], [log.fileno()])
            pid = self._socket.recv(32)
        except OSError:  # a late answer would pass for the next run's
            self._end()
            raise
        if not pid:
            raise ConnectionResetError("the process that forks runs has ended")
        return ForkedProcess(int(pid))

    def close(self) -> None:
        """End the server; runs that it has forked go on."""
        self._socket.close()
        self._end()
        _adopt_orphans(False)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _adopt_orphans(do: bool) -> None:
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(do))


class ForkedProcess:
    """A child of this process that another one has forked: as much of ``subprocess.Popen`` as a pool needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative where a signal killed it; None while it runs."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def wait(self, timeout: float) -> int:
        """Wait for its exit status.

        Raises:
            subprocess.TimeoutExpired: after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"run {self.pid}", timeout)
            time.sleep(0.02)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
