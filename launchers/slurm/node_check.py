"""What a run would find on this node, for ``site_check``: each finding with a cure where it is a no.

    python -m launchers.slurm.node_check FOLDER

``site_check`` has written into the folder what it expects, holds its lock, and keeps its clock there.
"""

import contextlib
import datetime
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
from pydantic import ValidationError

from launchers.core.preload import import_training
from launchers.slurm.job import rank_variables
from suite.base.files import read_file, write_atomically
from suite.base.frozen import Frozen
from suite.base.reading import read_model
from suite.spec.resources import Resources

_LEAST_BYTES = 10**9
_LARGEST_OFFSET_S = 60.0  # beside what a shared file system takes to show a file
_NETWORK_S = 40


class Expected(Frozen):
    """What the submitting host knows: ``num_gpus`` on a node, all ``nodes``, the store and the images."""

    num_gpus: int
    nodes: int
    store: str
    data_dir: str | None


class Finding(Frozen):
    """One line of the report; ``cure`` is "" where all is well."""

    what: str
    found: str
    cure: str = ""


def check_node(folder: Path) -> list[Finding]:
    """Try all that a run needs, each for itself."""
    expected = read_model(Expected, read_file(folder / "expected.json"))
    looks: dict[str, Callable[[], Iterator[Finding]]] = {
        "store": lambda: _store(folder, expected),
        "locks": lambda: _locks(folder),
        "clock": lambda: _clock(folder),
        "libraries": _libraries,
        "GPUs": lambda: _gpus(expected.num_gpus),
        "network": lambda: _network(expected),
    }
    found = []
    for what, look in looks.items():
        try:
            found += look()
        except Exception as error:  # whatever it is, it is the finding
            words = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            found.append(Finding(what=what, found=words, cure=_CURES[what]))
    return found


_CURES = {
    "store": "--runs must be a folder that login node and nodes share, and yours to write",
    "locks": "a file system whose locks hold between nodes: NFSv4, Lustre mounted with flock, GPFS; ask the site, or move --runs",
    "clock": "the clocks must agree to a minute: ask the site to run NTP on this node",
    "libraries": "install the package where nodes see it, load its modules in setup, or name a container",
    "GPUs": "ask for GPUs as the site names them (gpus_per_node, gres, gpus), and install torch for this driver",
    "network": "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to the network between nodes in setup; `ip addr` lists them",
}


def _store(folder: Path, expected: Expected) -> Iterator[Finding]:
    write_atomically(folder / f"seen-{os.environ['SLURM_PROCID']}", b"")
    free = shutil.disk_usage(folder).free
    yield Finding(what="store", found=f"{expected.store} is shared")
    full = "" if free > _LEAST_BYTES else "free space there, or move --runs"
    yield Finding(what="free space", found=f"{free / 1e9:,.0f} GB for --runs", cure=full)
    if expected.data_dir is not None:
        there = Path(expected.data_dir).is_dir()
        cure = "" if there else "--data-dir must be a folder that the nodes see; in a container, mount it"
        yield Finding(what="images", found=f"{expected.data_dir} is {'there' if there else 'not there'}", cure=cure)


def _locks(folder: Path) -> Iterator[Finding]:
    with contextlib.suppress(filelock.Timeout):
        with filelock.FileLock(folder / "lock", timeout=0):
            yield Finding(what="locks", found="this node got a lock that the other host holds", cure=_CURES["locks"])
        return
    yield Finding(what="locks", found="hold between the hosts")


def _clock(folder: Path) -> Iterator[Finding]:
    offsets = []
    for _ in range(3):
        offsets.append(time.time() - float(read_file(folder / "clock")))
        time.sleep(1)
    offset = min(offsets, key=abs)
    cure = _CURES["clock"] if abs(offset) > _LARGEST_OFFSET_S else ""
    yield Finding(what="clock", found=f"{offset:+,.0f} s from the submitting host's", cure=cure)


def _libraries() -> Iterator[Finding]:
    yield Finding(what="Python", found=f"{platform.python_version()}, {sys.executable}")
    import_training(Resources())
    import torch

    yield Finding(what="torch", found=str(torch.__version__))


def _gpus(num_expected: int) -> Iterator[Finding]:
    import torch

    if num_expected == 0:
        return
    num_seen = torch.accelerator.device_count()
    given = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("ROCR_VISIBLE_DEVICES", "none named"))
    driver = Path("/proc/driver/nvidia/version")
    version = driver.read_text().splitlines()[0] if driver.exists() else "no NVIDIA driver"
    found = f"torch sees {num_seen} of {num_expected}; SLURM gives {given}; {version}"
    yield Finding(what="GPUs", found=found, cure="" if num_seen >= num_expected else _CURES["GPUs"])


def _network(expected: Expected) -> Iterator[Finding]:
    import torch
    from torch import distributed

    if expected.nodes < 2:
        return
    on_gpu = expected.num_gpus > 0 and torch.accelerator.is_available()
    backend = "nccl" if on_gpu else "gloo"
    os.environ |= rank_variables(0)
    distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=_NETWORK_S))
    total = torch.ones(1, device=torch.accelerator.current_accelerator() if on_gpu else "cpu")
    distributed.all_reduce(total)
    distributed.destroy_process_group()
    cure = "" if total.item() == expected.nodes else _CURES["network"]
    yield Finding(what="network", found=f"{backend} adds over {total.item():.0f} of {expected.nodes} nodes", cure=cure)


def read_findings(path: Path) -> list[Finding] | None:
    """Read what a node has found; None where it has not written it."""
    with contextlib.suppress(OSError, ValueError, ValidationError):
        return [Finding(**one) for one in json.loads(read_file(path))]
    return None


if __name__ == "__main__":
    place = Path(sys.argv[1])
    findings = [finding.model_dump() for finding in check_node(place)]
    number, node = os.environ["SLURM_PROCID"], os.environ.get("SLURMD_NODENAME") or platform.node()
    write_atomically(place / f"found-{number}-{node}.json", json.dumps(findings).encode())
