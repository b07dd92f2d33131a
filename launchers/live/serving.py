"""The live pages' process beside a grid: started before it trains, ended with it.

Its standard input stays open for as long as the grid lives, also where that is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console

from launchers.command.address import Address
from launchers.core.sidecar import NICER, Helper
from suite.base.errors import SuiteError
from suite.base.exit_codes import Exit


class LiveServer:
    """The process that serves, of which the grid asks nothing."""

    def __init__(self, address: Address, words: Sequence[str]) -> None:
        order = json.dumps({"words": list(words), "address": asdict(address)})
        with address.listen() as listening:
            self.url = address.url(listening.getsockname()[1])
            socket_number = listening.fileno()
            self._helper = Helper("launchers.live", order, [str(socket_number)], [socket_number])

    def wait(self) -> None:
        """Serve until somebody presses Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            self._helper.wait()

    def close(self) -> str:
        """End it; returns its last words if it had ended by itself."""
        failed = self._helper.status
        self._helper.kill()
        return "" if failed is None else self._helper.last_words or f"status {failed}"


@contextlib.contextmanager
def serving(address: Address | None, words: Sequence[str], console: Console) -> Iterator[LiveServer | None]:
    """Serve what the block inside works on.

    Args:
        address: where; None: not at all.
        words: of the command line, from which the process learns what to show.
        console: told the URL.

    Raises:
        SpecError: nothing can listen there.
    """
    if address is None:
        yield None
        return
    server = LiveServer(address, words)
    console.print(f"live pages: {server.url}", soft_wrap=True)
    try:
        yield server
    finally:
        reason = server.close()
        if reason and not isinstance(sys.exception(), SuiteError):  # which may have ended both
            console.print(f"the live pages had ended before, nothing else has: {reason}", soft_wrap=True)


def serve() -> int:
    """Serve, as the process beside the grid; returns never, or where the command line no longer fits."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICER)
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_grid, daemon=True).start()
    threading.excepthook = _end_with_a_page
    from launchers.command.command_line import parse_options
    from launchers.command.grid_request import GridRequest
    from launchers.live.server import Server
    from launchers.live.site import make_site

    try:
        site = make_site(GridRequest.of(parse_options(asked["words"])))
    except SuiteError as error:
        sys.exit(str(error))
    Server(socket.socket(fileno=int(sys.argv[1])), Address(**asked["address"]), site).serve_forever()
    return Exit.DONE


def _end_with_the_grid() -> None:
    sys.stdin.read()
    os._exit(0)


def _end_with_a_page(failure: threading.ExceptHookArgs) -> None:
    """End, rather than show for ever what was true once: the grid then says why."""
    threading.__excepthook__(failure)
    os._exit(1)
