"""The server answers for the pages alone, by its own names or a token, and says why it cannot be had."""

import contextlib
import errno
import socket
import socketserver
import threading
import time

import pytest

from launchers.command.address import Address, parse_address
from launchers.grid import main
from launchers.live.cached_page import CachedPage
from launchers.live.site import ServedSite
from suite.base.exit_codes import Exit
from tests.launchers.live.conftest import PAGE, WORDS, ask, served


@pytest.fixture(scope="module")
def port():
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port:
        yield port


@pytest.fixture(scope="module")
def secret():
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)}), token="s3cret") as port:
        yield port


@pytest.mark.parametrize("path", ["/runs", "/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/.", "/%00"])
def test_nothing_is_served_but_the_pages(port, path):
    status, said, _ = ask(port, path)
    assert (status, said) == (404, "there is nothing here; expected /\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_only_looking_is_allowed(port, method):
    status, said, headers = ask(port, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert "expected GET or HEAD" in said


def test_a_head_has_what_a_get_has_without_its_body_and_what_did_not_change_is_not_sent_again(port):
    status, said, headers = ask(port)
    assert (status, said, headers["Content-Type"]) == (200, "<p>the board</p>", "text/html; charset=utf-8")
    assert ask(port, method="HEAD")[:2] == (200, "")
    assert ask(port, method="HEAD")[2]["Content-Length"] == headers["Content-Length"]
    assert ask(port, **{"If-None-Match": headers["ETag"]})[:2] == (304, "")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "192.168.0.1"])
def test_a_name_that_somebody_has_pointed_to_this_machine_is_refused(port, host):
    status, said, _ = ask(port, Host=host)
    assert (status, "answers to localhost alone" in said) == (403, True)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9000", "[::1]:80"])
def test_this_machines_own_names_are_answered_also_through_a_tunnel_of_another_port(port, host):
    assert ask(port, Host=host)[0] == 200


@pytest.mark.parametrize("path", ["/", "/wrong/", "/s3cre/", "/s3cret", "/s3cret%2f", "/?s3cret/"])
def test_another_address_needs_its_token(secret, path):
    status, said, _ = ask(secret, path)
    assert status == (404 if path == "/s3cret" else 403)
    assert "board" not in said


def test_with_its_token_any_name_is_answered(secret):
    assert ask(secret, "/s3cret/", Host="cluster.example")[:2] == (200, "<p>the board</p>")


def connect(port, said=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=600)
    connection.sendall(said)
    return connection


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x"])
def test_slow_connections_take_sixty_four_threads_at_most_and_let_others_through(said):
    before = threading.active_count()
    with (
        contextlib.ExitStack() as connections,
        served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)}), "s3cret") as port,
    ):
        for _ in range(200):
            connections.enter_context(connect(port, said))
            assert threading.active_count() < before + 80  # those that end, the server's and the page's beside
        for _ in range(3):
            assert ask(port, "/s3cret/")[0] == 200


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_request_that_does_not_come_as_a_whole_in_time_is_cut_off(monkeypatch, said):
    monkeypatch.setattr("launchers.live.server._REQUEST_S", 0.0)
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port, connect(port, said) as slow:
        assert slow.recv(1) == b""


def test_a_server_without_descriptors_waits_before_it_tries_again(monkeypatch):
    tried, pauses = [], []
    accept, sleep = socketserver.TCPServer.get_request, time.sleep

    def accept_later(self):
        tried.append(1)
        if len(tried) < 4:
            raise OSError(errno.EMFILE, "too many open files")
        return accept(self)

    monkeypatch.setattr(socketserver.TCPServer, "get_request", accept_later)
    monkeypatch.setattr("launchers.live.server._PAUSE_S", 0.0123)
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(seconds) or sleep(seconds))
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port:
        assert ask(port)[0] == 200
    assert pauses.count(0.0123) == 3


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("8000", "127.0.0.1", 8000), ("localhost", "localhost", 8000), (":0", "127.0.0.1", 0), ("[::1]:80", "::1", 80)],
)  # fmt: skip
def test_an_address_of_this_machine_alone_has_no_token(text, host, port):
    assert parse_address(text) == Address(host, port, "")


def test_another_address_has_a_token_of_its_own_each_time_which_no_message_shows():
    one, other = parse_address("0.0.0.0:8000"), parse_address("0.0.0.0:8000")
    assert one.token != other.token
    assert one.token in one.url(8000)
    assert one.token not in repr(one)


@pytest.mark.parametrize("text", ["127.0.0.1:99999", "a b:80", "host:http", "http://localhost:80", "localhost:-1"])
def test_an_address_that_is_none_is_a_misuse(capsys, text):
    with pytest.raises(SystemExit) as ended:
        main([*WORDS, "--serve", text])
    assert ended.value.code == Exit.MISUSE
    assert "expected HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_had_is_said_in_one_line_before_anything_is_trained(tmp_path, capsys, host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*WORDS, "--runs", str(tmp_path / "runs"), "--serve", f"{host}:{port}"]) == Exit.MISUSE
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"grid.py: --serve cannot listen at {host}, port {port}: ")
    assert "\n" not in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option", ["--dry-run", "--show", "--list", "--cancel"])
def test_what_does_no_work_is_not_served(capsys, option):
    assert main([*WORDS, "--serve", "--cluster", "slurm", option]) == Exit.MISUSE
    assert "goes with training, or with --status" in capsys.readouterr().err
