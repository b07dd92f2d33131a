"""A server on this machine that answers ranges as the large ones do, and can fail in the ways that they do."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator

import pytest


class FaultyServer(http.server.ThreadingHTTPServer):
    """Serves ``body`` under any path; each request takes the next of ``faults``, and is noted in ``ranges``."""

    daemon_threads = True

    def __init__(self, body: bytes, *faults: str) -> None:
        self.body, self.faults, self.ranges, self.etag = body, list(faults), list[str | None](), '"first"'
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/cifar-10-python.tar.gz"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Be silent about clients that give up."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: FaultyServer

    def do_GET(self) -> None:
        asked, body = self.headers["Range"], self.server.body
        self.server.ranges.append(asked)
        fault = self.server.faults.pop(0) if self.server.faults else ""
        if fault == "503":
            self.send_error(503)
            return
        is_known = self.headers["If-Range"] == self.server.etag and fault != "ignores ranges"
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and is_known else 0
        self.send_response(206 if start else 200)
        if start:
            told = start - 7 if fault == "tells another range" else start
            self.send_header("Content-Range", f"bytes {told}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", self.server.etag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[::-1][start:] if fault == "sends other bytes" else body[start:]
        if fault == "cut":
            rest = rest[: len(rest) // 2]
        if fault == "late":
            time.sleep(0.3)
        step = 1000 if fault == "slow" else len(rest) + 1
        for place in range(0, len(rest), step):
            self.wfile.write(rest[place : place + step])
            time.sleep(0.02 if fault == "slow" else 0)

    def log_message(self, *_: object) -> None:
        pass


StartServer = Callable[..., FaultyServer]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    servers = []

    def start(body: bytes, *faults: str) -> FaultyServer:
        servers.append(FaultyServer(body, *faults))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
