"""A machine's offer to a test cluster: rights, namespaces, cgroups, ports and addresses."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import platform
import socket
import subprocess
from pathlib import Path
from typing import IO, Literal

from nodes import UNSHARE, mount_freezer
from packages import ClusterUnavailable
from processes import system_environment
from settings import Mode, Tracking


def check_machine() -> None:
    if platform.system() != "Linux":
        raise ClusterUnavailable(f"needs Linux, and this is {platform.system()}")
    if os.geteuid() != 0:
        raise ClusterUnavailable("needs root: SLURM's daemons change users and make namespaces")


def lock_folder(folder: Path) -> IO[str]:
    """Keep others from starting or ending a cluster here, until this process ends at the latest."""
    lock = (folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise ClusterUnavailable(f"the cluster in {folder} belongs to a process that is still running") from None
    return lock


def choose_mode(
    folder: Path, mode: Mode | Literal["auto"], tracking: Tracking | Literal["auto"]
) -> tuple[Mode, Path | None]:
    """The mode, and where the freezer cgroup is if jobs are tracked by it."""
    if mode != "flat":
        allowed = _namespaces_allowed()
        if mode == "namespaces" and not allowed:
            raise ClusterUnavailable("this machine does not let us make namespaces")
        mode = "namespaces" if allowed else "flat"
    freezer = _find_freezer(folder) if mode == "namespaces" and tracking != "linuxproc" else None
    if tracking == "cgroup" and freezer is None:
        raise ClusterUnavailable("proctrack/cgroup needs namespaces and the freezer cgroup")
    return mode, freezer


def _namespaces_allowed() -> bool:
    """Whether this machine lets us make a node in namespaces."""
    links = "ip link add probe0 type veth peer name probe1 && ip link add probe2 type bridge"
    probe = [*UNSHARE, "sh", "-c", f"{links} && mount -t tmpfs probe /dev/shm"]
    return subprocess.run(probe, env=system_environment(), capture_output=True).returncode == 0


def _find_freezer(folder: Path) -> Path | None:
    """Where the freezer cgroup is mounted, or can be; None if this machine does not offer it."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup" and "freezer" in options.split(",") and os.access(place, os.W_OK):
            return Path(place)
    mounted = folder / "freezer"
    try:
        mount_freezer(mounted)
    except subprocess.CalledProcessError:
        return None
    subprocess.run(["umount", mounted], check=True)
    return mounted


def free_network() -> int:
    """N such that nothing on this machine is on 10.213.N.0/24."""
    routes = json.loads(subprocess.check_output(["ip", "-json", "-4", "route", "show", "table", "all"], text=True))
    known = [ipaddress.ip_network(r["dst"], strict=False) for r in routes if r["dst"][0].isdigit()]
    taken = [network for network in known if network.prefixlen >= 16]  # a route to all of 10.0.0.0/8 yields to ours
    return next(n for n in range(256) if not any(ipaddress.ip_network(f"10.213.{n}.0/24").overlaps(t) for t in taken))


def free_ports(num_ports: int) -> int:
    """The first of so many consecutive free ports, below those that outgoing connections get."""
    for first in range(17000, 30000, num_ports):
        if all(map(_is_free, range(first, first + num_ports))):
            return first
    raise OSError(f"no {num_ports} consecutive free ports between 17000 and 30000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
