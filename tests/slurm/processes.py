"""Long-lived processes: each is started with a mark in its environment, found by that mark and ended by its pid.

The mark survives whoever started the process, so the next run also finds what a killed run left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

_MARK = "SLURM_FIXTURE_PROCESS"
_started: list[subprocess.Popen[bytes]] = []  # ours to reap


def system_environment() -> dict[str, str]:
    """The caller's environment with the system folders on PATH and without what an enclosing SLURM job set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH_", "SRUN_"))}
    return kept | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"}


def mark_of(folder: Path, name: str) -> dict[str, str]:
    """The mark that a process of this cluster has in its environment."""
    return {_MARK: f"{folder}:{name}"}


def start_process(folder: Path, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
    """Start a process in a session of its own, with `log/<name>.out` and `run/<name>.pid` below the folder."""
    with (folder / "log" / f"{name}.out").open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**environment, **mark_of(folder, name)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started.append(process)
    (folder / "run" / f"{name}.pid").write_text(f"{process.pid}\n")
    return process.pid


def find_processes(folder: Path, name: str = "", program: str = "") -> list[int]:
    """The live processes that bear the folder's mark.

    Args:
        folder: The cluster's folder.
        name: Only those started under this name; descendants that kept their environment count.
        program: Only those that now run this program.
    """
    mark = f"{_MARK}={folder}:{name}".encode()
    found = (
        pid for pid, words in _environments() if any(w == mark or (not name and w.startswith(mark)) for w in words)
    )
    return [pid for pid in found if not program or _program(pid) == program]


def find_job_processes(slurm_conf: Path, node_name: str) -> list[int]:
    """The live processes that jobs of this cluster run on this node."""
    wanted = {f"SLURM_CONF={slurm_conf}".encode(), f"SLURMD_NODENAME={node_name}".encode()}
    return [pid for pid, words in _environments() if wanted <= set(words)]


def descendants(pids: Iterable[int]) -> list[int]:
    """These processes and all that come from them."""
    parents = {pid: _parent(pid) for pid in _all_pids()}
    found = set(pids)
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return sorted(found)


def end_processes(find: Callable[[], list[int]], how: signal.Signals = signal.SIGKILL, timeout_s: float = 20) -> None:
    """Signal what `find` finds until it finds nothing; after half of the time with SIGKILL.

    Raises:
        TimeoutError: If some process stays.
    """
    began = time.monotonic()
    signalled: set[int] = set()
    while pids := find():
        waited_s = time.monotonic() - began
        if waited_s > timeout_s:
            raise TimeoutError(f"processes {pids} are still there {timeout_s} s after {how.name}")
        if waited_s > timeout_s / 2:
            how = signal.SIGKILL
        for pid in pids:
            if how == signal.SIGKILL or pid not in signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        signalled.update(pids)
        reap()
        time.sleep(0.05)
    reap()


def reap() -> None:
    """Collect what has ended of the processes that this very process started."""
    _started[:] = [process for process in _started if process.poll() is None]


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, pause_s: float = 0.1) -> float:
    """Wait for a condition and return how long it took, in seconds.

    Raises:
        TimeoutError: If it does not come true in time.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise TimeoutError(f"waited {timeout_s:g} s in vain for {what}")
        time.sleep(pause_s)
    return time.monotonic() - began


def child_of(pid: int) -> int | None:
    """A process's first child, or None."""
    return next((child for child in _all_pids() if _parent(child) == pid), None)


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _environments() -> Iterable[tuple[int, list[bytes]]]:
    """Every live process with its environment."""
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            yield pid, _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    """A process's environment, waiting out an exec, in the middle of which it seems to have none.

    Raises:
        OSError: If the process has no program: it has ended, or is the kernel's.
    """
    for _ in range(20):
        if environment := Path(f"/proc/{pid}/environ").read_bytes():
            return environment
        Path(f"/proc/{pid}/exe").readlink()
        time.sleep(0.001)
    return b""


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
