"""A grid on a real cluster whose nodes and jobs fail ends with the leaderboard of an undisturbed local grid."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from grids import (
    FOUR,
    FOUR_IN_ONE_JOB,
    RUNS,
    a_run_in_mid_training,
    all_attempts,
    all_restarts,
    grid,
    job_of,
    leaderboard,
    node_of,
    on_slurm,
    stop,
    stopped,
    wait_for,
)

from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory


@pytest.mark.fault
def test_a_lost_node_s_runs_go_on_elsewhere_and_are_never_called_failed(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.power_cut(node_of(idle_cluster))
    for _ in range(3):
        assert "failed" not in grid(tmp_path, "--status").stdout
        time.sleep(1)
    on_slurm(tmp_path, *FOUR)
    assert leaderboard(tmp_path) == local_four
    assert ["lost", "finished"] in all_attempts(tmp_path)


@pytest.mark.fault
def test_a_preempted_run_writes_a_checkpoint_and_goes_on(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("sbatch", "--partition=high", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=sleep 3")
    on_slurm(tmp_path, *FOUR)
    assert leaderboard(tmp_path) == local_four
    tried = [attempt for path in RUNS for attempt in read_attempts(RunDirectory(tmp_path / path))]
    assert {attempt.restarts for attempt in tried} == {0, 1}
    assert all(attempt.why == "preempted" for attempt in tried if attempt.end == "interrupted")
    assert sum(attempt.end != "finished" for attempt in tried) <= 1  # but for the one that was hit, none ran twice


@pytest.mark.fault
def test_a_job_that_is_requeued_by_hand_while_the_controller_restarts_goes_on(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("scontrol", "requeue", job_of(idle_cluster))
    idle_cluster.restart_controller()
    on_slurm(tmp_path, *FOUR)
    assert leaderboard(tmp_path) == local_four
    assert max(all_restarts(tmp_path)) > 0


# -- time limits


MANY = ["--only", "model=convit_micro", "train_fraction=0.4", "--seeds", "40"]  # a job of over a minute, idle


@pytest.fixture(scope="module")
def at_time_limits(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Stores of two jobs that went on after their limits: one of processes that were all stopped, and one too long.

    Side by side: the first waits for six minutes, the shortest limit after which SLURM ends such processes.
    """
    cluster.reset()
    stopped_one, long_one = tmp_path_factory.mktemp("stopped"), tmp_path_factory.mktemp("long")
    on_slurm(stopped_one, "--detach", *FOUR_IN_ONE_JOB, "--time-min", "6")
    a_run_in_mid_training(stopped_one)
    assert len(stop(stopped_one)) == 2  # what watches, and what is watched
    limit = str(shortest_limit_min())
    on_slurm(long_one, "--detach", *MANY, "--runs-per-job", "40", "--time-min", limit)
    cluster.wait_idle(timeout_s=1800)  # takes as long as other work lets it
    return stopped_one, long_one


def shortest_limit_min() -> int:
    """A time limit in minutes of which a quarter is enough to load the libraries, beside what else this machine does.

    A job that is ended three times before it could begin is given up.
    """
    took_s = []
    for _ in range(2):  # the first may wait for the disk
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "import suite.training.loop, deepspeed"], check=True)
        took_s.append(time.monotonic() - began)
    return math.ceil(4 * min(took_s) / 60)


@pytest.mark.fault
def test_a_job_longer_than_its_time_limit_is_requeued_until_it_is_done(
    at_time_limits: tuple[Path, Path], tmp_path: Path
) -> None:
    runs = [RunDirectory(path) for path in at_time_limits[1].glob("experiments/*/*")]
    tried = {run.path.name: [(a.end, a.why) for a in read_attempts(run)] for run in runs}
    cut = [name for name, ends in tried.items() if ("interrupted", "time limit") in ends]
    assert sum(run.result_path.exists() for run in runs) == 40
    assert cut
    seed = cut[0].removeprefix("seed-")
    assert grid(tmp_path, *MANY, "--only", f"seed={seed}").returncode == 0
    (same,) = tmp_path.glob("experiments/*/*/weights.safetensors")
    assert same.read_bytes() == (runs[0].path.parent / cut[0] / "weights.safetensors").read_bytes()


@pytest.mark.fault
def test_a_job_whose_processes_are_all_stopped_until_its_time_limit_goes_on_too(
    at_time_limits: tuple[Path, Path], local_four: bytes
) -> None:
    assert leaderboard(at_time_limits[0]) == local_four
    assert max(all_restarts(at_time_limits[0])) > 0


# -- nodes that fail quietly


@pytest.fixture
def broken_nodes(idle_cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """A node on which the folder of torch is empty, and one whose Python ends well without having done anything."""
    if idle_cluster.settings.mode != "namespaces":
        pytest.skip("nodes of this cluster share their files")
    (tmp_path / "empty").mkdir()
    (tmp_path / "python").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "python").chmod(0o755)
    torch, python = Path(importlib.util.find_spec("torch").origin).parent, Path(sys.executable).resolve()
    idle_cluster.run_on("node1", ["mount", "--bind", tmp_path / "empty", torch], check=True)
    idle_cluster.run_on("node2", ["mount", "--bind", tmp_path / "python", python], check=True)
    yield
    idle_cluster.run_on("node1", ["umount", torch], check=True)
    idle_cluster.run_on("node2", ["umount", python], check=True)


@pytest.mark.fault
@pytest.mark.usefixtures("broken_nodes")
def test_nodes_without_torch_or_whose_python_does_nothing_are_named_and_left_out_and_the_grid_goes_on(
    tmp_path: Path, local: bytes
) -> None:
    said = on_slurm(tmp_path / "store")
    assert re.search(r"node1 could not begin \d jobs, and is left out: .*torch.*; see /.*_log.out", said)
    assert re.search(r"node2 could not begin \d jobs, and is left out: its Python ended with status 0", said)
    assert leaderboard(tmp_path / "store") == local
    begun = [attempt for path in RUNS for attempt in read_attempts(RunDirectory(tmp_path / "store" / path))]
    assert {attempt.host for attempt in begun} == {"node3", "node4"}
    (starts,) = (tmp_path / "store").glob("slurm/*/starts.jsonl")
    lost = [json.loads(line)["node"] for line in starts.read_text().splitlines()]
    assert set(lost) == {"node1", "node2"}
    assert lost.count("node1") <= 4  # it has room for three jobs at once


@pytest.mark.fault
@pytest.mark.parametrize("cut_off", [Cluster.kill_slurmd, Cluster.unplug])
def test_a_run_that_lives_on_where_slurm_lost_the_node_is_waited_for(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes, cut_off: Callable[[Cluster, str], None]
) -> None:
    if cut_off is Cluster.unplug and idle_cluster.settings.mode != "namespaces":
        pytest.skip("nodes of this cluster have no cables")
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    node = node_of(idle_cluster)
    cut_off(idle_cluster, node)
    with stopped(tmp_path):  # it holds its claim until it is let go on
        wait_for(lambda: '"held"' in "".join(path.read_text() for path in tmp_path.glob("slurm/*/starts.jsonl")))
        told = rf"held by a process on {node} of job \d+_0"  # once the start that met the claim is back in the queue
        wait_for(lambda: re.search(told, grid(tmp_path, "--status").stdout) is not None)
        assert "failed" not in grid(tmp_path, "--status").stdout
    on_slurm(tmp_path, *FOUR)
    assert leaderboard(tmp_path) == local_four
    assert not any("failed" in ends for ends in all_attempts(tmp_path))
