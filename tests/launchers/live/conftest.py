"""A server in this process, the grids that it shows, and how tests ask it."""

import contextlib
import http.client
import socket
import threading

from launchers.command.address import Address
from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.live.cached_page import ServedPage
from launchers.live.server import Server
from launchers.live.site import make_site
from launchers.live.state import StateReader
from suite.store import attempts
from suite.store.run_directory import RunDirectory

WORDS = ["--suite", "sample_efficiency", "--profile", "smoke"]
PAGE = ServedPage.of("<p>the board</p>", "text/html")


@contextlib.contextmanager
def served(site, token=""):
    """Yields the port of a server in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(listening, Address("127.0.0.1", 0, token), site)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.shutdown()


def ask(port, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, headers={"Host": "localhost:9", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.headers)


def grid_of(store):
    return GridRequest.of(parse_options([*WORDS, "--runs", str(store)]))


def site_of(grid):
    return make_site(grid, StateReader(grid))


def begin(store, experiment, **logged):
    """A run at work: its folder, an attempt and a line of metrics."""
    run = RunDirectory.of(store, experiment)
    run.create(experiment)
    attempts.record_start(run, 1)
    run.append_metrics({"step": 15, "num_steps": 60, "epoch": 1.0, **logged})
    return run
