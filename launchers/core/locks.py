"""Whether a folder's file system carries locks, by which runs are claimed: tried between two processes.

It shows what holds on this machine. That locks hold between nodes, too, only the mount can say. By another lock a grid
shows that it is at work, also before its first run begins and between two.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite.base.errors import SpecError
from suite.store.run_store import experiments_folder

_CURE = "Expected locks that hold, by which runs are claimed: on a local disk, NFS 4, or Lustre mounted with `flock`"
_TRY = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
_OF_ONE_NODE = {"nolock", "localflock", "local_lock=all", "local_lock=flock"}  # of NFS, and of Lustre
_MOUNTS = Path("/proc/self/mounts")
_SIGNS: list[int] = []  # open files by whose locks this process shows that it is at work
_NUM_PROBES, _PROBE_S = 4, 0.01


def check_locks(folder: Path) -> None:
    """Lock a new file, and let another process try the same.

    Raises:
        SpecError: The file system refuses locks, or both processes got one.
        OSError: The folder cannot be written to.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".locks-") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SpecError(f"{folder} is on a file system without locks: {error.strerror}. {_CURE}.") from error
        other = subprocess.run([sys.executable, "-ISc", _TRY, file.name], stderr=subprocess.PIPE, check=False)
        if other.returncode == 0:
            raise SpecError(f"{folder} is on a file system whose locks do not hold: two processes got one. {_CURE}.")


def lock_of_one_node(folder: Path) -> str:
    """Name the mount option, or the kind of mount, by which a folder's locks hold on this node alone; "" without."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:  # no Linux
        return ""
    place = folder.resolve()
    below = [mount for mount in mounts if place.is_relative_to(mount[1].replace(r"\040", " "))]
    _, _, kind, options, *_ = max(below, key=lambda mount: len(mount[1]))
    return "FUSE" if kind.startswith("fuse.") else " ".join(sorted(_OF_ONE_NODE & set(options.split(","))))


def show_work(store: Path, suite: str, profile: str) -> None:
    """Show that a grid trains here, until ``hide_work`` or the end of this process."""
    with contextlib.suppress(OSError):  # a full disk is told by what needs it
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC  # NFS shares a lock with who reads, too
        _SIGNS.append(os.open(_sign_of_work(store, suite, profile), flags, 0o666))
        fcntl.flock(_SIGNS[-1], fcntl.LOCK_SH)


def hide_work() -> None:
    while _SIGNS:
        os.close(_SIGNS.pop())


def is_at_work(store: Path, suite: str, profile: str) -> bool:
    """Whether a grid of this suite's profile trains in a store, as far as its files may be opened."""
    for _ in range(_NUM_PROBES):  # another look holds the lock for an instant
        try:
            with _sign_of_work(store, suite, profile).open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            time.sleep(_PROBE_S)
        except OSError:
            return False
    return True


def _sign_of_work(store: Path, suite: str, profile: str) -> Path:
    return experiments_folder(store) / f".{suite}-{profile}.at-work"
