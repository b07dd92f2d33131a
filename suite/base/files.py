"""Writing files so that nothing half-written is ever read, also when the disk is full; opening without waiting."""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import filelock
import platformdirs

from suite.base.errors import RunError, SuiteError


def write_atomically(path: Path, data: bytes, make_error: Callable[[Path, OSError], SuiteError] | None = None) -> None:
    """Write through a temporary name and rename, so that a reader sees all of it or nothing; RunError, or what
    ``make_error`` gives, names a path that cannot be written."""
    partial = partial_of(path)
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a disk that only reads refuses this too
            partial.unlink()
        raise (make_error or disk_error)(path, error) from error


def partial_of(path: Path) -> Path:
    """Name what becomes ``path`` while it is written, as nobody else does: containers share numbers of processes."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading; OSError for anything else: a FIFO would keep its reader waiting without end.

    A path that is none of this machine's (``suite.base.far.remote_path``) opens itself.
    """
    if open_binary := getattr(path, "open_binary", None):
        opened: BufferedReader = open_binary()
        return opened
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def open_to_append(path: Path) -> BufferedWriter:
    """Open a file to write at its end, and make it where it is missing.

    A FIFO would keep its writer waiting, and a link would lead into any file of its owner's: both raise OSError.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        what = {errno.ELOOP: "it is a link", errno.ENXIO: "it is a FIFO"}.get(error.errno or 0, error.strerror)
        raise OSError(error.errno, what, str(path)) from error
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a FIFO", str(path))
    return os.fdopen(descriptor, "ab")


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append a line of JSON to a file; RunError names a path that cannot be written."""
    with naming_disk_errors(path), open_to_append(path) as file:
        file.write(f"{json.dumps(record)}\n".encode())


def read_tail(path: Path, num_bytes: int) -> bytes:
    """The last bytes of a regular file, at most so many; errors as of ``open_file``."""
    with open_file(path) as file:
        file.seek(max(0, path.stat().st_size - num_bytes))
        return file.read()


def read_file(path: Path) -> bytes:
    """All bytes of a regular file; errors as of ``open_file``."""
    with open_file(path) as file:
        return file.read()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file, in hex; errors as of ``open_file``."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mark_of(path: Path) -> tuple[int, int, int] | None:
    """Find what changes whenever a file is written anew: time, size and number; None where there is no file."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
    return None


def cache_folder(name: str) -> Path:
    """Where what can be computed again is kept: in ``$SUITE_CACHE_DIR``, or else in the user's cache folder."""
    chosen = os.environ.get("SUITE_CACHE_DIR")
    return (Path(chosen).expanduser() if chosen else platformdirs.user_cache_path()) / name


def default_data_dir() -> Path:
    """The folder that image sets are kept in: ``$IMAGESETS_DIR``, or else the user's cache folder."""
    chosen = os.environ.get("IMAGESETS_DIR")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("imagesets")


def wait_for_lock(
    path: Path, say: Callable[[str], object], what: str
) -> contextlib.AbstractContextManager[filelock.BaseFileLock]:
    """Lock a file for a ``with`` block; ``what`` is said where another process has it. The kernel drops the lock when
    its owner dies."""
    lock = filelock.FileLock(path)
    try:
        return lock.acquire(timeout=1.0)
    except filelock.Timeout:
        say(what)
        return lock.acquire()


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Be the one process that changes a folder's files, and make it where it is missing; RunError where it cannot be
    written."""
    with naming_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / ".lock").acquire()
    with lock:
        yield


def disk_error(path: Path, error: OSError) -> RunError:
    """The user's message for a write that failed."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "no space left on the disk" if full else str(error)
    return RunError(f"cannot write {path}: {what}. Free space or choose another --runs, then use --retry-failed.")


@contextlib.contextmanager
def naming_disk_errors(path: Path, make_error: Callable[[Path, OSError], SuiteError] = disk_error) -> Iterator[None]:
    """Raise ``disk_error``, or another one that names the path, where a write fails."""
    try:
        yield
    except OSError as error:
        raise make_error(path, error) from error
