"""Runs that need others, on a real cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cluster import Cluster
from grids import a_run_in_mid_training, grid, job_of, leaderboard, on_slurm, stopped

from suite.papers import get_suite
from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory

DEPENDENT = "convit_masking"
NEEDED = [RunDirectory.of(Path(), e).path for e in get_suite(DEPENDENT).profile("smoke").experiments() if e.is_trained]
FEW_JOBS = ["--runs-per-job", "8"]


@pytest.fixture(scope="module")
def local_dependent(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = tmp_path_factory.mktemp("local-dependent")
    done = grid(store, suite=DEPENDENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return leaderboard(store, suite=DEPENDENT)


def test_runs_that_need_others_are_trained_after_them_and_end_with_the_local_leaderboard(
    idle_cluster: Cluster, tmp_path: Path, local_dependent: bytes
) -> None:
    said = on_slurm(tmp_path, suite=DEPENDENT)
    assert re.search(r"submitted 10 runs as 10 jobs: array \d+, \d+\n", said)
    assert leaderboard(tmp_path, suite=DEPENDENT) == local_dependent
    tried = [read_attempts(RunDirectory(path)) for path in tmp_path.glob("experiments/*/*")]
    assert [[attempt.end for attempt in run] for run in tried] == [["finished"]] * 10


@pytest.mark.fault
def test_a_run_waits_for_what_it_needs_through_requeues_and_in_another_submission(
    idle_cluster: Cluster, tmp_path: Path, local_dependent: bytes
) -> None:
    on_slurm(tmp_path, "--detach", "--only", "kind=training", *FEW_JOBS, suite=DEPENDENT)
    a_run_in_mid_training(tmp_path, NEEDED)
    needed = job_of(idle_cluster)
    with stopped(tmp_path):  # else both may have ended before they are waited for
        assert "submitted 8 runs as 1 jobs" in on_slurm(tmp_path, "--detach", *FEW_JOBS, suite=DEPENDENT)
    idle_cluster.call("scontrol", "requeue", needed)
    said = grid(tmp_path, "--status", suite=DEPENDENT).stdout
    assert re.search(r"\b[1-8] waiting", said)  # the shorter of the two that are needed may have ended by now
    assert "failed" not in said
    idle_cluster.wait_idle()  # SLURM lets a requeued job rest for a while
    assert leaderboard(tmp_path, suite=DEPENDENT) == local_dependent


def test_what_needs_a_cancelled_run_is_not_trained_and_not_called_failed(
    idle_cluster: Cluster, tmp_path: Path, local_dependent: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FEW_JOBS, suite=DEPENDENT)
    a_run_in_mid_training(tmp_path, NEEDED)
    idle_cluster.call("scancel", job_of(idle_cluster))
    idle_cluster.wait_idle()
    said = grid(tmp_path, "--status", suite=DEPENDENT).stdout
    assert "waiting" in said
    assert "failed" not in said
    assert not list(tmp_path.glob("experiments/*/*/failure.json"))
    on_slurm(tmp_path, *FEW_JOBS, suite=DEPENDENT)
    assert leaderboard(tmp_path, suite=DEPENDENT) == local_dependent
