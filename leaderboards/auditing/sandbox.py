"""Strangers' models are trained in a sandbox of bubblewrap: no network, nothing of ours but what training reads.

A command -> the same command behind ``bwrap`` and ``prlimit``. It may write to one folder, a run's. All else that it
sees is read-only: the system's libraries, Python, the code and the images. ``/tmp`` and ``/dev/shm`` are its own and
vanish.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.base.errors import RunError

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_VARIABLES = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "USER": "nobody", "LANG": "C.UTF-8"}
_NOBODY = 65534


@dataclass(frozen=True)
class Limits:
    """The most that a run may take, in a sandbox or, of its minutes, anywhere."""

    minutes: float = 60.0
    memory_gb: float = 16.0  # of each process, in 10^9 bytes
    num_processes: int = 256  # and threads
    file_gb: float = 1.0  # of each file that it writes, and of all in /tmp, and in /dev/shm


def sandboxed(
    command: Sequence[str], writable: Path, readable: Iterable[Path], variables: Mapping[str, str], limits: Limits
) -> list[str]:
    """Put a command into a sandbox.

    Args:
        command: a program and its arguments.
        writable: the only folder that it can change; the folder's owner becomes the sandbox's user.
        readable: the files and folders that it sees beside the system's and Python's.
        variables: its environment, as a whole.
        limits: the most that it may take.
    """
    words = ["bwrap", "--die-with-parent", "--new-session", "--clearenv", "--chdir", "/"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/dev/shm"):
        words += ["--perms", "1777", "--size", f"{limits.file_gb * 1e9:.0f}", "--tmpfs", place]
    for name in _SYSTEM:
        words += ["--symlink", os.readlink(name), name] if Path(name).is_symlink() else ["--ro-bind-try", name, name]  # noqa: PTH115
    seen = sorted(set(map(absolute, [*_python(), *readable])))  # a folder before those in it
    for parent in sorted({parent for path in [*seen, writable] for parent in path.parents}):
        words += ["--perms", "0755", "--dir", str(parent)]  # else only root could pass
    for path in seen:
        words += ["--ro-bind-try", str(path), str(path)]
    words += ["--bind", str(writable), str(writable), "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in {**_VARIABLES, **variables}.items():
        words += ["--setenv", name, value]
    if os.geteuid():
        words += ["--unshare-user"]
    else:  # the kernel limits the processes of any user but root
        for path in (writable, *writable.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
        words += ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        words += ["--bounding-set=-all", "--inh-caps=-all"]
    words += ["prlimit", f"--data={limits.memory_gb * 1e9:.0f}", f"--nproc={limits.num_processes}"]
    return [*words, f"--fsize={limits.file_gb * 1e9:.0f}", "--core=0", *command]


def absolute(path: str | Path) -> Path:
    """Spell a path without ".." and its links as they are, as the sandbox has no other folders to pass."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def check_sandbox() -> None:
    """Raise RunError where no sandbox can be had here."""
    if missing := [name for name in ("bwrap", "prlimit", "setpriv") if shutil.which(name) is None]:
        cure = "sudo apt-get install bubblewrap util-linux"
        raise RunError(f"a sandbox needs {' and '.join(missing)}, which is not installed here: {cure}")
    with tempfile.TemporaryDirectory() as folder:
        command = sandboxed(["true"], Path(folder), [], {}, Limits())
        tried = subprocess.run(command, capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    if tried.returncode:
        said = tried.stderr.decode(errors="replace").strip()
        raise RunError(f"bubblewrap cannot make a sandbox here: {said}. Allow user namespaces, or use another machine")


def _python() -> list[Path]:
    """The folders of this Python and of all packages that are installed for it, without editable ones."""
    installed = {Path(str(found.locate_file(""))) for found in importlib.metadata.distributions()}
    packages = [path for path in sorted(installed) if path.name in ("site-packages", "dist-packages")]
    return [Path(sys.executable).resolve().parents[1], Path(sys.base_prefix), Path(sys.prefix), *packages]
