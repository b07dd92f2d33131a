"""Whether a folder's file system carries locks, by which runs are claimed: tried between two processes.

It shows what holds on this machine. That locks hold between nodes, too, only the mount can say.
"""

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

from suite.base.errors import SpecError

_CURE = "Expected locks that hold, by which runs are claimed: on a local disk, NFS 4, or Lustre mounted with `flock`"
_TRY = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
_OF_ONE_NODE = {"nolock", "localflock", "local_lock=all", "local_lock=flock"}  # of NFS, and of Lustre
_MOUNTS = Path("/proc/self/mounts")


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
