"""Downloads from a server that is slow, cuts the connection, is overloaded, or is wrong about what it sends."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suite.base.errors import DataError
from suite.base.far import downloads

BODY = bytes(number * number % 251 for number in range(100_000))


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., bytes]:
    def get(server: Any, min_kb_per_s: int = 0) -> bytes:
        downloads.download(server.url, tmp_path / "file", Console(stderr=True), min_kb_per_s)
        return (tmp_path / "file").read_bytes()

    return get


def test_a_cut_download_goes_on_where_it_stopped(start_server: Any, get: Any) -> None:
    server = start_server(BODY, "cut", "cut")
    for arrived in ("50,000", "75,000"):
        with pytest.raises(downloads.Unfinished, match=f"the connection ended after {arrived} of 100,000 bytes"):
            get(server)
    assert get(server) == BODY
    assert server.ranges == [None, "bytes=50000-", "bytes=75000-"]
    assert get(server) == BODY
    assert len(server.ranges) == 3  # nothing is asked for that is there


def test_a_file_that_changed_meanwhile_is_fetched_anew(start_server: Any, get: Any) -> None:
    server = start_server(BODY, "cut")
    with pytest.raises(downloads.Unfinished):
        get(server)
    server.body, server.etag = BODY[::-1], '"second"'
    assert get(server) == BODY[::-1]


def test_a_server_that_ignores_ranges_sends_all_again(start_server: Any, get: Any) -> None:
    server = start_server(BODY, "cut", "ignores ranges")
    with pytest.raises(downloads.Unfinished):
        get(server)
    assert get(server) == BODY


def test_a_range_that_was_not_asked_for_is_refused_and_the_next_try_starts_over(start_server: Any, get: Any) -> None:
    server = start_server(BODY, "cut", "tells another range")
    with pytest.raises(downloads.Unfinished):
        get(server)
    expected = r"asked for bytes 50000-99999/100000 and sent bytes 49993-99999/100000: starting over"
    with pytest.raises(downloads.Unfinished, match=expected):
        get(server)
    assert get(server) == BODY
    assert server.ranges[2] is None


def test_a_slow_download_is_given_up_unless_any_rate_will_do(
    start_server: Any, get: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "RATE_WINDOW_S", 0.2)
    server = start_server(BODY, "slow", "slow")  # at most 50 kB/s
    with pytest.raises(downloads.Unfinished, match=r"too slow: \d+ kB/s over 0 s, expected 200 or more"):
        get(server, downloads.MIN_KB_PER_S)
    assert get(server) == BODY
    assert server.ranges[1] is not None


def test_an_overloaded_server_is_an_error_that_keeps_what_has_arrived(start_server: Any, get: Any) -> None:
    server = start_server(BODY, "503", "cut", "503")
    with pytest.raises(DataError, match="HTTP Error 503") as raised:
        get(server)
    assert not isinstance(raised.value, downloads.Unfinished)
    with pytest.raises(downloads.Unfinished):
        get(server)
    with pytest.raises(downloads.Unfinished, match="HTTP Error 503"):
        get(server)
    assert get(server) == BODY


def test_a_full_disk_is_no_fault_of_the_server(start_server: Any, get: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, _: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="No space left"):
        get(start_server(BODY))
