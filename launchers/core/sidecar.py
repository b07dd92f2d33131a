"""A subprocess of ours beside a grid or a job, which may fail or take its time without any run noticing.

Its first line of input is its request. Its input stays open for as long as its starter lives, also where that is
killed, and its end tells it to end.
"""

import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

NICER = 10  # training goes first
_READ_TIMEOUT_S = 60.0  # in which it reads its request, once no more comes
_KILL_TIMEOUT_S = 5.0  # for a killed process to be gone; one that waits for a dead file system is left to itself


class Sidecar:
    """A Python module that runs as such a process, and keeps the descriptors ``pass_fds``.

    ``request`` is the line that it reads first; a long one is handed over while it starts.
    """

    def __init__(self, module: str, request: str, arguments: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> None:
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed with this object
        self.process = subprocess.Popen(
            [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            encoding="utf-8",
            errors="replace",
            pass_fds=pass_fds,
            start_new_session=True,
        )
        self._sender = threading.Thread(target=self._send, args=(request,), daemon=True)
        self._sender.start()

    def _send(self, request: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, and will be found so
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()

    def tell(self, line: str) -> None:
        """Give it another line, after its request."""
        self._sender.join(_READ_TIMEOUT_S)
        self._send(line)

    def stderr_tail(self) -> str:
        """Read the last line that it wrote to its standard error."""
        self._stderr.seek(0)
        lines = self._stderr.read().strip().splitlines()
        return lines[-1] if lines else ""

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        assert self.process.stdin is not None
        self._sender.join(_READ_TIMEOUT_S)
        if self._sender.is_alive():  # it does not read, and will not
            self.process.kill()
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILL_TIMEOUT_S)
