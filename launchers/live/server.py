"""The live pages over HTTP: what a browser may ask for, and what it is refused."""

from __future__ import annotations

import hmac
import json
import socket
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from launchers.live.address import Address, is_loopback
from launchers.live.board import Board
from launchers.live.kept import KeptPage, Page
from launchers.live.state import COLUMNS, TEXTS, StateReader
from launchers.request import GridRequest
from leaderboards.report.packed import spelt

STATE = "state.json"
_EVERY_S = 2.0  # between two looks at the runs
_EVERY_S_OF_SLURM = 5.0  # it is asked as often as by --watch
_TIMEOUT_S = 30.0  # with a browser that does not go on
_SAFETY = {
    "Cache-Control": "no-cache",  # asked again each time, and answered "not modified" where it is the same
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'",  # beside the page's own, which is stricter
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the token is in the address
    "X-Content-Type-Options": "nosniff",
}


def make_pages(grid: GridRequest) -> dict[str, KeptPage]:
    """The board, and the state that it asks for every few seconds."""
    board = Board(grid, COLUMNS, TEXTS, STATE)
    reader = StateReader(grid)

    def make_state() -> Page:
        state = reader.read()
        state["troubles"] += [board.trouble] if board.trouble else []
        return Page.of(json.dumps(spelt({**state, "board": board.mark}), allow_nan=False), "application/json")

    every_s = _EVERY_S_OF_SLURM if grid.options.cluster == "slurm" else _EVERY_S
    return {"": KeptPage(board.make, _EVERY_S), STATE: KeptPage(make_state, every_s)}


class Server(ThreadingHTTPServer):
    """Answers at a socket that already listens, from pages by their path below the token, and from nothing else."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, address: Address, pages: Mapping[str, KeptPage]) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.listens_at, self.pages = address, pages

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone away."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "convolutional-prior", ""
    timeout = _TIMEOUT_S

    def parse_request(self) -> bool:
        """Read what is asked; anything but looking is refused, whatever it is called."""
        if not super().parse_request():
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "these pages can only be looked at: expected GET or HEAD")
        return False

    def do_GET(self) -> None:
        if refusal := self._find_refusal():
            return self._refuse(*refusal)
        path = urlsplit(self.path).path.removeprefix(self._prefix)
        if path not in self.server.pages:
            return self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing here; expected {self._prefix}")
        for kept in self.server.pages.values():
            kept.want()
        page = self.server.pages[path].find()
        if page is None:
            return self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"not built yet; {self._prefix}{STATE} says why")
        if self.headers.get("If-None-Match") == f'"{page.mark}"':
            return self._answer(HTTPStatus.NOT_MODIFIED, b"", {"ETag": f'"{page.mark}"'})
        is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
        about = {"Content-Type": page.type, "ETag": f'"{page.mark}"', "Vary": "Accept-Encoding"}
        about |= {"Content-Encoding": "gzip"} if is_packed else {}
        return self._answer(HTTPStatus.OK, page.packed if is_packed else page.content, about)

    do_HEAD = do_GET

    @property
    def _prefix(self) -> str:
        token = self.server.listens_at.token
        return f"/{token}/" if token else "/"

    def _find_refusal(self) -> tuple[HTTPStatus, str] | None:
        """Check that the browser was sent here by who started the grid, not by another page that it shows."""
        address = self.server.listens_at
        if address.token:
            given = urlsplit(self.path).path.split("/")[1:2]
            if not hmac.compare_digest(*(text.encode() for text in ("".join(given), address.token))):
                return (
                    HTTPStatus.FORBIDDEN,
                    "the token is missing or wrong: open the whole address that grid.py printed",
                )
            return None
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        if not is_loopback(host):  # a name that somebody else has pointed to this machine
            return HTTPStatus.FORBIDDEN, "this server answers to localhost alone: open the address that grid.py printed"
        return None

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        allowed = {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._answer(status, f"{reason}\n".encode(), {"Content-Type": "text/plain; charset=utf-8", **allowed})

    def _answer(self, status: HTTPStatus, body: bytes, about: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_SAFETY, **about, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep quiet: the terminal is the grid's."""
