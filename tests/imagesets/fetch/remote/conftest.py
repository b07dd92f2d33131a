"""A web server with faults."""

import http.server
import threading
import time
from collections import Counter
from urllib.parse import unquote, urlsplit

import pytest

from imagesets.fetch import remote


class FaultyServer(http.server.ThreadingHTTPServer):
    """Serves ``files`` by ranges; ``faults`` holds those of the next replies, of any file, one each.

    A fault is "503", "reset", "cut", "slow", "other range", or "whole", which takes no note of the range.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.faults, self.asked = {}, [], Counter()
        self.etag = '"1"'

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer(None, is_head=True)

    def do_GET(self):
        self._answer(self.server.faults.pop(0) if self.server.faults else None)

    def _answer(self, fault, is_head=False):
        data = self.server.files.get(unquote(urlsplit(self.path).path))
        if data is None or fault == "503":
            self.send_response(404 if data is None else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        wanted, part, size = self.headers.get("Range"), data, len(data)
        self.server.asked[wanted or self.command] += 1
        if wanted and fault != "whole":
            start, stop = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
            start += fault == "other range"
            part = data[start : stop + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{size}")
        else:
            self.send_response(200)
        if fault == "slow":
            time.sleep(1)
        self.send_header("ETag", self.server.etag)
        self.send_header("Last-Modified", "Wed, 21 Oct 2026 07:28:00 GMT")
        self.send_header("Content-Length", str(len(part)))
        if fault == "reset":
            self.close_connection = True
            return
        self.end_headers()
        if not is_head:
            self.wfile.write(part[: len(part) // 2] if fault == "cut" else part)
        self.close_connection = fault == "cut"

    def handle_error(self, *_):
        pass


@pytest.fixture
def forgotten(monkeypatch, tmp_path):
    """A process that has read no address yet, waits little, and has a cache of its own."""
    monkeypatch.setenv("IMAGESETS_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(remote, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.3)
    for cached in (
        remote.list_folder,
        remote.find,
        remote._open_cache,
        remote._open_store,
        remote._hugging_face,
        remote._find_commit,
    ):
        cached.cache_clear()


@pytest.fixture
def server(forgotten):
    with FaultyServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
