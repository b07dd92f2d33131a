"""Writing files so that nothing half-written is ever read, also when the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs

from suite.errors import RunError


def write_atomically(path: Path, data: bytes) -> None:
    """Write through a temporary name and rename, so that a reader sees all of it or nothing.

    Raises:
        RunError: when the disk is full; the message names the path.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise disk_error(path, error) from error


def cache_folder(name: str) -> Path:
    """Where what can be computed again is kept: in ``$SUITE_CACHE_DIR``, or else in the user's cache folder."""
    chosen = os.environ.get("SUITE_CACHE_DIR")
    return (Path(chosen).expanduser() if chosen else platformdirs.user_cache_path()) / name


def disk_error(path: Path, error: OSError) -> RunError:
    """The user's message for a write that failed."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "no space left on the disk" if full else str(error)
    return RunError(f"cannot write {path}: {what}. Free space or choose another --runs, then use --retry-failed.")
