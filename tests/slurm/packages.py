"""The system packages that the test cluster is made of: finds what is missing and lets apt install it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLICY = Path("/usr/sbin/policy-rc.d")
# 101 is the answer "you may not start this service"
_POLICY_TEXT = "#!/bin/sh\n# tests/slurm/packages.py: a package that is being installed starts no daemon\nexit 101\n"

# Debian 12's and Ubuntu 24.04's names; none of them starts anything by itself
_PACKAGE_OF_PROGRAM = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "sbatch": "slurm-client",
    "mariadbd": "mariadb-server-core",
    "my_print_defaults": "mariadb-client-core",  # mariadb-install-db calls it
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
}


class ClusterUnavailable(Exception):
    """This machine cannot run the test cluster; the text says why."""


def missing_packages() -> list[str]:
    """The packages whose program is not on this machine."""
    missing = {pkg for program, pkg in _PACKAGE_OF_PROGRAM.items() if not shutil.which(program, path=_SYSTEM_PATH)}
    return sorted(missing)


def install_packages(apt_log: Path) -> list[str]:
    """Install what is missing.

    Args:
        apt_log: Where apt's output goes.

    Returns:
        The packages that were installed.

    Raises:
        ClusterUnavailable: If there is no apt, or it failed.
    """
    _remove_own_policy()  # of a run that was killed here
    missing = missing_packages()
    if not missing:
        return []
    if not shutil.which("apt-get"):
        raise ClusterUnavailable(f"needs {', '.join(missing)}, and there is no apt-get to install them")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with apt_log.open("w") as log, _no_daemon_starts():
        for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *missing]):
            full = ["apt-get", "-o", "DPkg::Lock::Timeout=120", *command]
            done = subprocess.run(full, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            if done.returncode:
                tail = "\n".join(apt_log.read_text().splitlines()[-5:])
                raise ClusterUnavailable(f"{' '.join(full)} failed ({apt_log}):\n{tail}")
    return missing


@contextlib.contextmanager
def _no_daemon_starts() -> Iterator[None]:
    if _POLICY.exists():  # the machine's owner has decided
        yield
        return
    _POLICY.write_text(_POLICY_TEXT)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _remove_own_policy()


def _remove_own_policy() -> None:
    if _POLICY.exists() and _POLICY.read_text() == _POLICY_TEXT:
        _POLICY.unlink()
