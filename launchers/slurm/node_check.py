"""The look at one node, as lines of (what, found, cure); the cure is "" where a run would find all well.

    python -m launchers.slurm.node_check FOLDER NUM_GPUS DATA_DIR

``site_check`` on the submitting host holds the folder's lock, and keeps its clock there.
"""

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

from launchers.core.preload import import_training
from launchers.slurm.job import rank_variables
from suite.base.files import read_file, write_atomically
from suite.spec.resources import Resources

Finding = tuple[str, str, str]
_LEAST_BYTES = 10**9
_LARGEST_OFFSET_S = 60.0  # beside what a shared file system takes to show a file
_NETWORK_S = 40
_CURES = {
    "store": "--runs must be a folder that login node and nodes share, and yours to write",
    "locks": "move --runs to a file system whose locks hold between nodes: NFSv4, GPFS, Lustre mounted with flock",
    "clock": "the clocks must agree to a minute: ask the site to run NTP on this node",
    "libraries": "install the package where nodes see it, load its modules in setup, or name a container",
    "GPUs": "ask for GPUs as the site names them (gpus_per_node, gres, gpus), and install torch for this driver",
    "images": "--data-dir must be a folder that the nodes see; in a container, mount it",
    "network": "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME in setup to the nodes' network; `ip addr` lists them",
}


def check_node(folder: Path, num_gpus: int, data_dir: str) -> Iterator[Finding]:
    """Try all that a run needs, each for itself."""
    looks: dict[str, Callable[[], tuple[str, bool]]] = {
        "store": lambda: _store(folder),
        "locks": lambda: _locks(folder),
        "clock": lambda: _clock(folder),
        "libraries": _libraries,
        "GPUs": lambda: _gpus(num_gpus),
        "network": lambda: _network(num_gpus > 0),
    }
    if data_dir:
        looks["images"] = lambda: _images(Path(data_dir))
    for what, look in looks.items():
        try:
            found, is_well = look()
        except Exception as error:  # whatever it is, it is the finding
            found, is_well = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", False
        yield what, found, "" if is_well else _CURES[what]


def _images(folder: Path) -> tuple[str, bool]:
    return f"{folder} is {'' if folder.is_dir() else 'not '}there", folder.is_dir()


def _store(folder: Path) -> tuple[str, bool]:
    write_atomically(folder / f"seen-{os.environ['SLURM_PROCID']}", b"")
    free = shutil.disk_usage(folder).free
    return f"shared, {free / 1e9:,.0f} GB free", free > _LEAST_BYTES


def _locks(folder: Path) -> tuple[str, bool]:
    try:
        with filelock.FileLock(folder / "lock", timeout=0):
            return "this node got a lock that the other host holds", False
    except filelock.Timeout:
        return "hold between the hosts", True


def _clock(folder: Path) -> tuple[str, bool]:
    offsets = []
    for _ in range(3):
        offsets.append(time.time() - float(read_file(folder / "clock")))
        time.sleep(1)
    offset = min(offsets, key=abs)
    return f"{offset:+,.0f} s from the submitting host's", abs(offset) <= _LARGEST_OFFSET_S


def _libraries() -> tuple[str, bool]:
    import_training(Resources())
    import torch

    return f"Python {platform.python_version()}, torch {torch.__version__}; {sys.executable}", True


def _gpus(num_expected: int) -> tuple[str, bool]:
    import torch

    num_seen = torch.accelerator.device_count()
    given = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("ROCR_VISIBLE_DEVICES", "none"))
    driver = Path("/proc/driver/nvidia/version")
    version = driver.read_text(encoding="utf-8").splitlines()[0] if driver.exists() else "no NVIDIA driver"
    return f"torch sees {num_seen} of {num_expected}; SLURM gives {given}; {version}", num_seen >= num_expected


def _network(on_gpu: bool) -> tuple[str, bool]:
    import torch
    from torch import distributed

    variables = rank_variables(0)
    if variables["WORLD_SIZE"] == "1":
        return "one node: not tried", True
    os.environ |= variables
    on_gpu = on_gpu and torch.accelerator.is_available()
    backend = "nccl" if on_gpu else "gloo"
    distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=_NETWORK_S))
    total = torch.ones(1, device=torch.accelerator.current_accelerator() if on_gpu else "cpu")
    distributed.all_reduce(total)
    distributed.destroy_process_group()
    return f"{backend} adds over {total.item():.0f} nodes", f"{total.item():.0f}" == variables["WORLD_SIZE"]


if __name__ == "__main__":
    place, number, images = sys.argv[1:]
    findings = list(check_node(Path(place), int(number), images))
    node = os.environ.get("SLURMD_NODENAME") or platform.node()
    write_atomically(Path(place) / f"found-{node}.json", json.dumps(findings).encode())
