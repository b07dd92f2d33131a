"""The live pages' sidecar of a grid: started before it trains, told how it ends, and ended with it."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console

from launchers.command.address import Address
from launchers.command.options import GridOptions
from launchers.core.sidecar import NICER, Sidecar
from suite.base.arguments import program
from suite.base.errors import SpecError, SuiteError
from suite.base.exit_codes import Exit

_LAST_S = 20.0  # in which browsers that look see the end
_LOOK_S = 5.0  # in which a page asks again that follows a grid
_POLL_S = 0.2


@contextlib.contextmanager
def serving(options: GridOptions, words: Sequence[str], console: Console) -> Iterator[Sidecar | None]:
    """Serve what the block inside works on, by a sidecar of which the grid asks nothing; in a terminal until Ctrl-C.

    Args:
        options: options of the grid, with the address to serve at, if any.
        words: words of the command line, from which the process learns what to show.
        console: console that shows the URL.
    """
    if options.serve is None:
        yield None
        return
    command = f"{program('grid', 'python launchers/grid.py')} {shlex.join(words)}"
    request = json.dumps({"words": list(words), "address": asdict(options.serve), "command": command})
    with options.serve.listen() as listening:
        url, descriptor = options.serve.url(listening.getsockname()[1]), listening.fileno()
        server = Sidecar("launchers.live.serving", request, [str(descriptor)], [descriptor])
    console.print(f"live pages: {url}", soft_wrap=True)
    stays = False
    try:
        yield server
        stays = not options.watch if options.status else console.is_terminal and sys.stdin.isatty()
        if stays and server.process.poll() is None:
            with contextlib.suppress(KeyboardInterrupt):
                if not options.status:
                    server.tell(json.dumps(""))
                    console.print(f"live pages: {url} stays until Ctrl-C", soft_wrap=True)
                server.process.wait()
    finally:
        error, status = sys.exception(), server.process.poll()
        if not (stays or isinstance(error, SpecError)):
            server.tell(json.dumps("Interrupted" if isinstance(error, KeyboardInterrupt) else str(error or "")))
            server.end_input()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(_LAST_S + _POLL_S)
        server.kill()
        if status is not None and not isinstance(error, SuiteError):  # which may have ended both
            reason = server.stderr_tail() or f"status {status}"
            console.print(f"the live pages had ended before, nothing else has: {reason}", soft_wrap=True)


def serve() -> int:
    """Serve as the sidecar of the grid, ``python -m launchers.live.serving SOCKET``; raises where it cannot begin."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICER)
    request = json.loads(sys.stdin.readline())
    from launchers.command.command_line import parse_options
    from launchers.command.grid_request import GridRequest
    from launchers.live.server import Server
    from launchers.live.site import STATE, make_site
    from launchers.live.state import KILLED, StateReader

    try:
        grid = GridRequest.of(parse_options(request["words"]))
        state = StateReader(grid, request["command"])
        site = make_site(grid, state)
    except SuiteError as error:
        sys.exit(str(error))
    server = Server(socket.socket(fileno=int(sys.argv[1])), Address(**request["address"]), site)

    def end_with_the_grid() -> None:
        how = sys.stdin.readline()
        if not grid.options.status:
            state.end(json.loads(how) if how else KILLED)
            for path in (STATE, ""):
                site.pages[path].due = 0.0
            sys.stdin.read()
            until = time.monotonic() + _LAST_S
            while time.monotonic() < min(until, server.looked_at + _LOOK_S):
                time.sleep(_POLL_S)
        os._exit(0)

    threading.Thread(target=end_with_the_grid, daemon=True).start()
    server.serve_forever()
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(serve())
