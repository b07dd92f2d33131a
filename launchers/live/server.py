"""The live pages over HTTP: what a browser may ask for, and what it is refused."""

import contextlib
import hmac
import math
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from launchers.command.address import Address, is_loopback
from launchers.live.site import ServedSite

_MAX_CONNECTIONS = 64  # at once, each with a thread
_REQUEST_S = 10.0  # in which a whole request has come, however slowly
_ANSWER_S = 30.0  # in which a browser has taken what it is sent
_PAUSE_S = 0.2  # where no connection can be had, before the next one is tried
_POLICY_OF_FILES = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
_SAFETY = {
    "Cache-Control": "no-cache",  # asked again each time, and answered "not modified" where it is the same
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'",  # beside the page's own, which is stricter
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the token is in the address
    "X-Content-Type-Options": "nosniff",
}
_REFUSALS = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": "GET, HEAD"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "2", "Refresh": "2"},  # a browser asks again without a script
}


class Server(ThreadingHTTPServer):
    """Answers at a socket that already listens, from a site's pages below the token, and from nothing else.

    Anybody may connect: where all places are taken, the connection whose request is longest in coming is cut off.
    """

    daemon_threads = True

    def __init__(self, listening: socket.socket, address: Address, site: ServedSite) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.listens_at, self.site = address, site
        self.looked_at = -math.inf  # inf: somebody waits for an answer
        self._places = threading.Semaphore(_MAX_CONNECTIONS)
        self._awaited: dict[socket.socket, float] = {}  # requests to come, and until when; the oldest first

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection, or wait a little where no descriptor is left for it."""
        try:
            return super().get_request()
        except OSError:
            self._cut_off(1)
            time.sleep(_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self._cut_off(1)
            self._places.acquire()
        self._awaited[request] = time.monotonic() + _REQUEST_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.has_come(request)
        self._places.release()

    def service_actions(self) -> None:
        """Cut off, every now and then, whose time is up."""
        now = time.monotonic()
        self._cut_off(sum(until < now for until in list(self._awaited.values())))

    def has_come(self, request: socket.socket) -> bool:
        """Note that a request is here as a whole; says whether it was still awaited."""
        return self._awaited.pop(request, None) is not None

    def _cut_off(self, number: int) -> None:
        for request in list(self._awaited)[:number]:
            if self.has_come(request):
                with contextlib.suppress(OSError):  # it has gone by itself
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone away."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "convolutional-prior", ""
    timeout = _ANSWER_S

    def parse_request(self) -> bool:
        """Read what is asked; anything but looking is refused, whatever it is called."""
        if not super().parse_request() or not self.server.has_come(self.connection):
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "these pages can only be looked at: expected GET or HEAD")
        return False

    def do_GET(self) -> None:
        if refusal := self._find_refusal():
            return self._refuse(HTTPStatus.FORBIDDEN, refusal)
        self.server.looked_at = math.inf
        path = urlsplit(self.path).path.removeprefix(self._prefix)
        if (place := self.server.site.moved.get(path)) is not None:
            return self._answer(HTTPStatus.FOUND, b"", {"Location": f"{self._prefix}{place}"})
        cached, name = self.server.site.find(path) or (None, "")
        page = cached.find() if cached else None
        if cached and page is None:
            return self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{cached.trouble}. This page comes by itself once it can"
            )
        page = page.linked.get(name) if page and name else page
        if page is None:
            return self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing here; expected {self._prefix}")
        if self.headers.get("If-None-Match") == f'"{page.mark}"':
            return self._answer(HTTPStatus.NOT_MODIFIED, b"", {"ETag": f'"{page.mark}"'})
        is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
        about = {"Content-Type": page.type, "ETag": f'"{page.mark}"', "Vary": "Accept-Encoding"}
        about |= {"Content-Encoding": "gzip"} if is_packed else {}
        about |= {} if page.type.startswith("text/html") else {"Content-Security-Policy": _POLICY_OF_FILES}
        return self._answer(HTTPStatus.OK, page.packed if is_packed else page.content, about)

    do_HEAD = do_GET

    @property
    def _prefix(self) -> str:
        token = self.server.listens_at.token
        return f"/{token}/" if token else "/"

    def _find_refusal(self) -> str:
        """Check that the browser was sent here by who started the grid, not by another page that it shows."""
        if token := self.server.listens_at.token:
            given = "".join(urlsplit(self.path).path.split("/")[1:2])
            wrong = not hmac.compare_digest(given.encode(), token.encode())
            return "the token is missing or wrong: open the whole address that grid.py printed" * wrong
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        wrong = not is_loopback(host)  # a name that somebody else has pointed to this machine
        return "this server answers to localhost alone: open the address that grid.py printed" * wrong

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        about = {"Content-Type": "text/plain; charset=utf-8", **_REFUSALS.get(status, {})}
        self._answer(status, f"{reason}\n".encode(), about)

    def _answer(self, status: HTTPStatus, body: bytes, about: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_SAFETY, **about, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.server.looked_at = time.monotonic()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep quiet: the terminal is the grid's."""
