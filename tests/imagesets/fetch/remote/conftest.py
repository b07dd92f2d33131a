"""A web server with faults, and a local S3."""

import contextlib
import http.client
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
import obstore.store
import pytest

from suite.base.far import remote, stores


class FaultyServer(http.server.ThreadingHTTPServer):
    """Serves ``files`` by ranges; ``faults`` holds those of the next replies, of any file, one each.

    A fault is "503", "reset", "cut", "slow", "other range", or "whole", which takes no note of the range.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.faults, self.asked = {}, [], Counter()
        self.etag, self.absent = '"1"', 404

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
            self.send_response(self.server.absent if data is None else 503)
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
    monkeypatch.setattr(stores, "TIMEOUT_S", 0.3)
    for cached in (
        remote.list_folder,
        remote.find,
        remote._open_cache,
        stores._open_store,
        stores._hugging_face,
        stores._find_commit,
    ):
        cached.cache_clear()


@pytest.fixture
def server(forgotten):
    with FaultyServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def moto():
    """The address of a local S3."""
    program = Path(sys.prefix) / "moto" / "bin" / "moto_server"
    if not program.exists() and os.environ.get("CI") != "true":
        pytest.skip("moto is not installed: `make moto`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([program, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url = f"http://127.0.0.1:{port}"
        while server.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/moto-api/"):
                break
            time.sleep(0.1)
        yield url
        server.terminate()


@pytest.fixture
def bucket(moto, forgotten, monkeypatch):
    """An empty bucket, found by the environment alone."""
    monkeypatch.setattr(stores, "TIMEOUT_S", 30)
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    urllib.request.urlopen(f"{moto}/moto-api/reset", b"").close()
    with contextlib.closing(http.client.HTTPConnection(urlsplit(moto).netloc)) as connection:
        connection.request("PUT", "/photos")
        assert connection.getresponse().status == 200
    return obstore.store.from_url("s3://photos", client_options={"allow_http": True})
