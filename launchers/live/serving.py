"""The live pages' sidecar of a grid: started before it trains, ended with it, also where that is killed."""

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
from launchers.core.sidecar import NICER, Sidecar
from suite.base.errors import SuiteError
from suite.base.exit_codes import Exit


@contextlib.contextmanager
def serving(address: Address | None, words: Sequence[str], console: Console) -> Iterator[Sidecar | None]:
    """Serve what the block inside works on, by a sidecar of which the grid asks nothing.

    Args:
        address: address to serve at; None: nothing is served.
        words: words of the command line, from which the process learns what to show.
        console: console that shows the URL.
    """
    if address is None:
        yield None
        return
    request = json.dumps({"words": list(words), "address": asdict(address)})
    with address.listen() as listening:
        url, descriptor = address.url(listening.getsockname()[1]), listening.fileno()
        server = Sidecar("launchers.live.serving", request, [str(descriptor)], [descriptor])
    console.print(f"live pages: {url}", soft_wrap=True)
    try:
        yield server
    finally:
        status = server.process.poll()
        server.kill()
        if status is not None and not isinstance(sys.exception(), SuiteError):  # which may have ended both
            reason = server.stderr_tail() or f"status {status}"
            console.print(f"the live pages had ended before, nothing else has: {reason}", soft_wrap=True)


def serve() -> int:
    """Serve as the sidecar of the grid, ``python -m launchers.live.serving SOCKET``; raises where it cannot begin."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICER)
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_grid, daemon=True).start()
    threading.excepthook = _end_with_a_page
    from launchers.command.command_line import parse_options
    from launchers.command.grid_request import GridRequest
    from launchers.live.server import Server
    from launchers.live.site import make_site

    try:
        site = make_site(GridRequest.of(parse_options(request["words"])))
    except SuiteError as error:
        sys.exit(str(error))
    Server(socket.socket(fileno=int(sys.argv[1])), Address(**request["address"]), site).serve_forever()
    return Exit.DONE


def _end_with_the_grid() -> None:
    sys.stdin.read()
    os._exit(0)


def _end_with_a_page(failure: threading.ExceptHookArgs) -> None:
    """End, rather than show for ever what was true once: the grid then says why."""
    threading.__excepthook__(failure)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(serve())
