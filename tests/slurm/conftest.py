"""The SLURM cluster that the tests in this folder share.

They run when asked to: `make test-slurm`, or TEST_SLURM=1. TEST_SLURM_MODE (namespaces, flat) and TEST_SLURM_TRACKING
(cgroup, linuxproc) choose the kind of cluster; without them it is the most faithful one that the machine allows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # cluster.py is also a command, so its neighbours are top-level modules
from cluster import Cluster
from grids import FOUR, grid, leaderboard
from packages import ClusterUnavailable

_HERE = Path(__file__).parent
_FOLDER = Path("/var/lib/slurm-test-cluster/tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave this folder out unless asked: its tests need root, install packages and take minutes."""
    if os.environ.get("TEST_SLURM") == "1":
        return
    ours = [item for item in items if item.path.is_relative_to(_HERE)]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster for all tests, to which every subprocess of theirs speaks."""
    try:
        mode, tracking = (os.environ.get(f"TEST_SLURM_{name}", "auto") for name in ("MODE", "TRACKING"))
        running = Cluster.start(_FOLDER, mode=mode, process_tracking=tracking, cpus=3)  # ten jobs fill four nodes
    except ClusterUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs a SLURM cluster: {reason}")
        pytest.skip(f"no SLURM cluster: {reason}")
    with running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running


@pytest.fixture
def idle_cluster(cluster: Cluster) -> Cluster:
    """The cluster with every node up and no job left of an earlier test."""
    cluster.reset()
    return cluster


@pytest.fixture(scope="session")
def local_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="session")
def local_four(local_store: Path) -> bytes:
    """The leaderboard of four runs of the grid on this machine."""
    return _trained_here(local_store, *FOUR)


@pytest.fixture(scope="session")
def local(local_store: Path, local_four: bytes) -> bytes:
    """The leaderboard of the whole grid on this machine, which goes on from the four."""
    return _trained_here(local_store)


def _trained_here(store: Path, *options: str) -> bytes:
    done = grid(store, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return leaderboard(store)
