"""Several nodes in one run, on a real cluster: it trains as one node would, and ends as one process."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from cluster import Cluster
from grids import RUNS, a_run_in_mid_training, grid, on_slurm, wait_for

from suite.store.attempts import read_attempts
from suite.store.heartbeat import read_beat
from suite.store.run_directory import RunDirectory

ONE = ["--only", "train_fraction=0.4", "model=convit_micro"]
TWO_NODES = [*ONE, "--nodes", "2"]


def the_run(store: Path) -> RunDirectory:
    (run,) = (RunDirectory(store / path) for path in RUNS if (store / path).is_dir())
    return run


def losses(store: Path) -> list[float]:
    return [line["loss"] for line in the_run(store).read_metrics() if "loss" in line]


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The losses of one run with two ranks on one node."""
    store = tmp_path_factory.mktemp("two-ranks")
    assert grid(store, *ONE, "--ranks-per-node", "2").returncode == 0
    return losses(store)


def test_two_nodes_train_one_run_with_the_losses_of_one(
    idle_cluster: Cluster, tmp_path: Path, two_ranks: list[float]
) -> None:
    on_slurm(tmp_path / "two", *TWO_NODES)
    assert losses(tmp_path / "two") == pytest.approx(two_ranks, abs=1e-5)
    assert grid(tmp_path / "one", *ONE).returncode == 0  # one rank adds in another order: rounding grows with the steps
    assert losses(tmp_path / "two")[:10] == pytest.approx(losses(tmp_path / "one")[:10], abs=1e-5)
    tmp_path = tmp_path / "two"
    result = the_run(tmp_path).read_result()
    assert (result.num_nodes, result.num_ranks) == (2, 2)
    assert result.device_hours > 0


@pytest.mark.fault
@pytest.mark.parametrize("victim", ["training", "task"])
def test_a_rank_that_dies_takes_the_others_with_it_and_the_run_goes_on(
    idle_cluster: Cluster, tmp_path: Path, two_ranks: list[float], victim: str
) -> None:
    on_slurm(tmp_path, "--detach", *TWO_NODES)
    run = a_run_in_mid_training(tmp_path)
    second = next(folder for folder in Path("/proc").glob("[0-9]*") if is_rank(folder, str(tmp_path), "1"))
    parent = re.search(r"PPid:\s*(\d+)", (second / "status").read_text())
    os.kill(int(second.name if victim == "training" else parent[1]), signal.SIGKILL)
    on_slurm(tmp_path, *TWO_NODES)
    assert losses(tmp_path) == pytest.approx(two_ranks, abs=1e-5)
    assert len(read_attempts(run)) == 2


@pytest.mark.fault
def test_a_rank_that_is_stopped_is_ended_and_named_and_the_run_goes_on(
    idle_cluster: Cluster, tmp_path: Path, two_ranks: list[float]
) -> None:
    on_slurm(tmp_path, "--detach", *TWO_NODES)
    run = a_run_in_mid_training(tmp_path)
    wait_for(lambda: knows_its_pace(run))  # a first checkpoint or evaluation has half an hour before it counts as hung
    second = next(folder for folder in Path("/proc").glob("[0-9]*") if is_rank(folder, str(tmp_path), "1"))
    os.kill(int(second.name), signal.SIGSTOP)
    wait_for(lambda: "no step for " in grid(tmp_path, "--status", *ONE).stdout)
    wait_for(run.failure_path.exists)  # a minute is the least that is waited
    node = re.search(r"rank 1 on (node\d) hung: no step for .*; its process is stopped", run.read_failure().reason)
    assert node
    on_slurm(tmp_path, *TWO_NODES)
    assert losses(tmp_path) == pytest.approx(two_ranks, abs=1e-5)
    assert len(read_attempts(run)) == 2


def test_a_run_of_two_nodes_goes_on_with_one(idle_cluster: Cluster, tmp_path: Path, two_ranks: list[float]) -> None:
    on_slurm(tmp_path, "--detach", *TWO_NODES)
    a_run_in_mid_training(tmp_path)
    grid(tmp_path, "--cancel")
    idle_cluster.wait_idle()
    on_slurm(tmp_path, *ONE)
    resumed_at = read_attempts(the_run(tmp_path))[1].from_step
    assert losses(tmp_path)[: resumed_at + 2] == pytest.approx(two_ranks[: resumed_at + 2], abs=1e-3)
    assert [attempt.num_ranks for attempt in read_attempts(the_run(tmp_path))] == [2, 1]


def is_rank(process: Path, store: str, rank: str) -> bool:
    """Whether this is the process that trains a run of the store as this rank: a child of what srun started."""
    try:
        environment = (process / "environ").read_bytes().decode().split("\0")
        parent = re.search(r"PPid:\s*(\d+)", (process / "status").read_text())
        command = (process / "cmdline").read_bytes().decode()
        of_parent = (process.parent / parent[1] / "cmdline").read_bytes().decode() if parent else ""
    except (OSError, UnicodeDecodeError):
        return False
    return f"SLURM_PROCID={rank}" in environment and store in command and "launchers.slurm.job" in of_parent


def knows_its_pace(run: RunDirectory) -> bool:
    """Whether everything that is still to come has been done once, so that its watch knows how long it takes."""
    beat = read_beat(run)
    return beat is not None and {"training", "evaluation", "checkpoint"} <= beat.slowest_s.keys()
