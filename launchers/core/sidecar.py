"""A process of ours beside a grid or a job, which may fail or take its time without any run noticing.

Its first line of input says what to do. Its input stays open for as long as its starter lives, also where that is
killed, and its end tells it to end.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

NICER = 10  # training goes first
_READ_S = 60.0  # in which it reads its order, once no more comes
_DEATH_S = 5.0  # for a killed process to be gone; one that waits for a dead file system is left to itself


class Helper:
    """A Python module that runs as such a process.

    Args:
        module: as ``python -m`` takes it.
        order: the line that it reads first; a long one is handed over while it starts.
        arguments: of its command line.
        pass_fds: descriptors that it keeps.

    Raises:
        OSError: there is no room for a file or a process.
    """

    def __init__(self, module: str, order: str, arguments: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> None:
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed with this object
        self._process = subprocess.Popen(
            [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            encoding="utf-8",
            errors="replace",
            pass_fds=pass_fds,
            start_new_session=True,
        )
        self._sender = threading.Thread(target=self._send, args=(order,), daemon=True)
        self._sender.start()

    def _send(self, order: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, and will be found so
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()

    @property
    def status(self) -> int | None:
        """Its exit status; None while it lives."""
        return self._process.poll()

    @property
    def last_words(self) -> str:
        """The last line that it wrote to its standard error."""
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return lines[-1] if lines else ""

    def wait(self, patience_s: float | None = None) -> int:
        """The status that it ends with.

        Raises:
            TimeoutExpired: it still lives.
        """
        return self._process.wait(patience_s)

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        assert self._process.stdin is not None
        self._sender.join(_READ_S)
        if self._sender.is_alive():  # it does not read, and will not
            self._process.kill()
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DEATH_S)
