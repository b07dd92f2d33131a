"""Sites differ, here on a real cluster: typed GPUs, forbidden requeues, one array at a time, containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from grids import (
    FOUR,
    FOUR_IN_ONE_JOB,
    ROOT,
    a_run_in_mid_training,
    all_attempts,
    all_restarts,
    grid,
    job_of,
    leaderboard,
    logs,
    on_slurm,
    wait_for,
)
from settings import GPU_TYPE, SLICE_TYPE

ON_GPUS = ["--cluster", "slurm", "--device", "gpu", "--only", "train_fraction=0.4", "--detach"]


@pytest.fixture
def no_requeue(idle_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster whose jobs do not go back into the queue."""
    idle_cluster.configure("JobRequeue=1", "JobRequeue=0")
    yield idle_cluster
    idle_cluster.configure("JobRequeue=0", "JobRequeue=1")


# -- GPUs


@pytest.mark.parametrize(
    ("request_for", "gres", "devices"),
    [
        (["--gpus-per-node", f"{GPU_TYPE}:2"], f"gpu:{GPU_TYPE}=2", "0,1"),
        (["--gres", f"gpu:{SLICE_TYPE}:2", "--cpus-per-task", "1"], "gpu=2", "6,7"),
        (["--gpus", f"{GPU_TYPE}:4", "--nodes", "2", "--cpus-per-task", "1"], f"gpu:{GPU_TYPE}=4", "0,1"),
    ],
)
def test_typed_gpus_reach_the_job_which_says_what_torch_sees_of_them(
    idle_cluster: Cluster, tmp_path: Path, request_for: list[str], gres: str, devices: str
) -> None:
    done = grid(tmp_path, *ON_GPUS, "--cpus-per-task", "1", *request_for)
    assert done.returncode == 0, done.stderr
    (job_id,) = re.findall(r"array (\d+)", done.stdout)
    assert f"gres/{gres}" in idle_cluster.call("scontrol", "show", "job", job_id)
    said = f"torch sees 0 of the 2 GPUs that this job counts on; SLURM gave it CUDA_VISIBLE_DEVICES={devices}"
    wait_for(lambda: said in logs(tmp_path))
    grid(tmp_path, "--cancel")


def test_gpus_that_the_cluster_has_not_are_refused_with_those_that_it_has(
    idle_cluster: Cluster, tmp_path: Path
) -> None:
    done = grid(tmp_path, *ON_GPUS, "--gpus-per-node", "a100:1")
    assert done.returncode == 2
    assert f"GPUs of this cluster, by sinfo: batch gpu:{GPU_TYPE}:6,gpu:{SLICE_TYPE}:2" in done.stderr


# -- requeues that are forbidden, or ignored


@pytest.mark.parametrize("is_forbidden", [True, False])
def test_where_no_job_may_requeue_itself_the_next_of_its_chain_goes_on(
    no_requeue: Cluster, tmp_path: Path, local_four: bytes, is_forbidden: bool
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB, "--chain", "3", *(["--no-requeue"] if is_forbidden else []))
    if not is_forbidden:
        no_requeue.call("scontrol", "update", f"JobId={job_of_queue(no_requeue)}", "Requeue=0")
    a_run_in_mid_training(tmp_path)
    no_requeue.call("scancel", "--signal=USR2", job_of(no_requeue))
    wait_for(lambda: ["interrupted"] in all_attempts(tmp_path) or ["interrupted", "finished"] in all_attempts(tmp_path))
    on_slurm(tmp_path, *FOUR)
    no_requeue.wait_idle()
    assert leaderboard(tmp_path) == local_four
    assert ["interrupted", "finished"] in all_attempts(tmp_path)
    assert all_restarts(tmp_path) == {0}
    assert len(list(tmp_path.glob("slurm/*/submission.json"))) == 1
    assert "the next job of the chain goes on" in logs(tmp_path)
    assert len(list(tmp_path.glob("slurm/*/*_log.out"))) == 3  # of two jobs of three, and of the leaderboard's


def job_of_queue(cluster: Cluster) -> str:
    return min(cluster.call("squeue", "--noheader", "--format=%F").split(), key=int)


def test_where_one_array_at_a_time_is_allowed_the_others_follow_as_it_ends(
    idle_cluster: Cluster, tmp_path: Path
) -> None:
    """Trainings, then what looks at them: two arrays, of which the second is submitted once the first is over."""
    said = on_slurm(tmp_path, "--max-arrays", "1", suite="convit_masking")
    assert len(re.findall(r"submitted \d+ runs as \d+ jobs: array \d+\n", said)) == 2
    runs = [path.parent for path in tmp_path.glob("experiments/*/*/experiment.json")]
    assert runs
    assert all((run / "result.json").exists() for run in runs), logs(tmp_path)


def test_a_named_cluster_and_an_empty_environment_are_carried_into_the_jobs(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, *FOUR_IN_ONE_JOB, "--slurm", "clusters=lab", "export=NONE", "gres-flags=enforce-binding")
    assert leaderboard(tmp_path) == local_four


APPTAINER = """#!/bin/bash
[ "$1 $2 $4" = "exec --bind --bind" ] || { echo "found $*"; exit 2; }
while [ "$1" != suite.sif ]; do shift; done
shift 2
PATH=EMPTY exec /usr/bin/env "$@"
"""


def test_runs_in_a_container_which_has_none_of_slurm_s_programs_are_requeued_and_go_on(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in for Apptainer, on every node's PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/apptainer").write_text(APPTAINER.replace("EMPTY", str(tmp_path)))
    (tmp_path / "bin/apptainer").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "images").mkdir()
    site = tmp_path / "site.toml"
    site.write_text(
        f'container = "suite.sif"\ncontainer_python = "{sys.executable}"\nruns = "{tmp_path}/store"\n'
        f'data_dir = "{tmp_path}/images"\n'
    )
    store = tmp_path / "store"
    on_slurm(store, "--detach", "--site", str(site), *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(store)
    idle_cluster.call("scancel", "--signal=USR2", job_of(idle_cluster))
    idle_cluster.wait_idle()
    assert leaderboard(store) == local_four, logs(store)
    assert ["interrupted", "finished"] in all_attempts(store)
    assert max(all_restarts(store)) == 1


def test_the_check_of_a_site_tries_two_nodes_and_has_a_cure_for_each_no(idle_cluster: Cluster, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--site-check", "--runs", str(tmp_path), "--nodes", "2"]
    environment = {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(
        [*command, "--gpus-per-node", f"{GPU_TYPE}:1"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "gloo adds over 2 nodes" in done.stdout
    assert re.search(r"locks +node1, node2 +hold between the hosts +ok", done.stdout)
    assert "1 to cure" in done.stdout  # there is no GPU
    assert idle_cluster.call("squeue", "--noheader", "--states=PD,R") == ""
