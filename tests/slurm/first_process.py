"""Process 1 of a node: gives the node its own name and files, then lives until the power is cut.

Usage: first_process.py NODE FOLDER CGROUP|LINUXPROC, inside new namespaces.
"""

import signal
import socket
import subprocess
import sys
from pathlib import Path


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def main(node: str, folder: Path, process_tracking: str) -> None:
    socket.sethostname(node)
    mount("-t", "tmpfs", "-o", "mode=1777", "shm", "/dev/shm")
    for name in ("hosts", "resolv.conf"):
        if Path("/etc", name).exists():
            mount("--bind", folder / "etc" / name, Path("/etc", name))
    if Path("/etc/slurm").is_dir():  # for jobs that do not inherit SLURM_CONF
        mount("--bind", folder / "etc", "/etc/slurm")
    if process_tracking == "cgroup":
        mount("-t", "tmpfs", "cgroup", "/sys/fs/cgroup")
        Path("/sys/fs/cgroup/freezer").mkdir()
        mount("-t", "cgroup", "-o", "freezer", "cgroup", "/sys/fs/cgroup/freezer")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps the orphans that end up here
    (folder / "run" / f"{node}.booted").touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
