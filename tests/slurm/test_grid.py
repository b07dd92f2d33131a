"""A grid on a real cluster, from its submission to its end or its user's, ends with the leaderboard of a local grid."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import Cluster
from grids import (
    FOUR,
    FOUR_IN_ONE_JOB,
    ROOT,
    RUNS,
    SUITE,
    a_run_in_mid_training,
    all_attempts,
    grid,
    job_of,
    leaderboard,
    logs,
    on_slurm,
    served_state,
)

from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory
from suite.store.tuning import read_tuning


def test_a_grid_over_four_nodes_is_one_array_and_ends_with_the_local_leaderboard(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    said = on_slurm(tmp_path, "--track", "tensorboard")
    assert re.search(r"submitted 10 runs as 10 jobs: array \d+\n", said)
    assert leaderboard(tmp_path) == local
    assert all_attempts(tmp_path) == [["finished"]] * 10
    hosts = {read_attempts(RunDirectory(tmp_path / path))[0].host for path in RUNS}
    assert hosts == {"node1", "node2", "node3", "node4"}
    tracked = [tmp_path / "tracking/tensorboard" / path.relative_to("experiments") for path in RUNS]
    assert [len(list(folder.glob("events.*"))) for folder in tracked] == [1] * 10
    again = on_slurm(tmp_path)
    assert "nothing to submit" in again
    assert "10 done" in grid(tmp_path, "--status").stdout
    assert served_state(tmp_path)["summary"] == "10 runs: 10 done"


def test_a_custom_model_s_file_reaches_the_nodes_though_it_is_gone_once_it_is_submitted(
    idle_cluster: Cluster, tmp_path: Path
) -> None:
    model = tmp_path / "linear.py"
    model.write_text(
        "from torch import nn\n"
        "def linear(*, num_classes, image_size):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(3 * image_size**2, num_classes))\n"
    )
    few = ["--only", "model=mine", "train_fraction=0.0375"]
    on_slurm(tmp_path, "--detach", "--challenger", f"mine={model}:linear", *few)
    model.unlink()
    idle_cluster.wait_idle()
    (run,) = tmp_path.glob("experiments/custom-linear-*/seed-0")
    assert (run / "result.json").exists(), logs(tmp_path)
    assert b"mine_top1" in leaderboard(tmp_path)


def test_tries_of_a_tuned_grid_are_trained_on_the_cluster_and_choose_as_here(
    idle_cluster: Cluster, tmp_path: Path
) -> None:
    two_tries = ["--tune", "2", "--only", "train_fraction=0.2"]
    there, here = tmp_path / "cluster", tmp_path / "here"
    assert "submitted 4 runs" in on_slurm(there, "--detach", *two_tries)
    idle_cluster.wait_idle()
    assert "submitted 2 runs" in on_slurm(there, *two_tries)
    done = grid(here, *two_tries)
    assert done.returncode == 0, done.stdout + done.stderr
    profile = "smoke+tune2"
    assert read_tuning(there, SUITE, profile).top1_percent == read_tuning(here, SUITE, profile).top1_percent
    assert leaderboard(there, profile) == leaderboard(here, profile)


def test_the_last_job_builds_the_leaderboard_when_nobody_watches(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    idle_cluster.wait_idle()
    assert leaderboard(tmp_path) == local_four


def test_cancelled_jobs_stay_away_until_the_grid_is_started_again(
    idle_cluster: Cluster, tmp_path: Path, local_four: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    assert "cancelled 1 jobs" in grid(tmp_path, "--cancel").stdout
    idle_cluster.wait_idle()
    said = grid(tmp_path, "--status").stdout
    assert "cancelled" in said
    assert "failed" not in said
    on_slurm(tmp_path, *FOUR)
    assert leaderboard(tmp_path) == local_four


def test_two_grids_at_once_submit_every_run_once(idle_cluster: Cluster, tmp_path: Path, local_four: bytes) -> None:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", SUITE, "--profile", "smoke"]
    command += ["--runs", str(tmp_path), "--cluster", "slurm", *FOUR_IN_ONE_JOB]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("submitted 4 runs" in text for text in said) == [False, True]
    assert leaderboard(tmp_path) == local_four
    assert [ends for ends in all_attempts(tmp_path) if ends] == [["finished"]] * 4


def test_grid_py_may_be_left_with_ctrl_c(idle_cluster: Cluster, tmp_path: Path, local_four: bytes) -> None:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", SUITE, "--profile", "smoke"]
    command += ["--runs", str(tmp_path), "--cluster", "slurm", *FOUR_IN_ONE_JOB]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
    )
    a_run_in_mid_training(tmp_path)
    process.send_signal(signal.SIGINT)
    assert "the jobs go on" in process.communicate(timeout=60)[0]
    idle_cluster.wait_idle()
    assert leaderboard(tmp_path) == local_four


def test_a_job_that_the_user_cancels_with_scancel_stays_away(idle_cluster: Cluster, tmp_path: Path) -> None:
    on_slurm(tmp_path, "--detach", *FOUR_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("scancel", job_of(idle_cluster))
    idle_cluster.wait_idle()
    assert len(list(tmp_path.glob("experiments/*/*/result.json"))) < 4


def test_laptop_runs_on_several_nodes_end_with_the_local_leaderboard(idle_cluster: Cluster, tmp_path: Path) -> None:
    """Two short ones: real images make the difference here, longer runs would add minutes alone."""
    from suite.base.files import default_data_dir

    if not (default_data_dir() / "cifar10.safetensors").exists():
        pytest.skip("CIFAR-10 is not there; fetch it with `python -m imagesets cifar10`")
    store = tmp_path / "slurm-store"
    short, suite = ["--only", "kind=training"], "convit_masking"
    done = grid(store, "--cluster", "slurm", *short, profile="laptop", suite=suite)
    assert done.returncode == 0, done.stdout + done.stderr + logs(store)
    assert grid(tmp_path / "local", *short, profile="laptop", suite=suite).returncode == 0
    assert leaderboard(store, "laptop", suite) == leaderboard(tmp_path / "local", "laptop", suite)
    weights, here = (
        sorted(folder.glob("experiments/*/*/weights.safetensors")) for folder in (store, tmp_path / "local")
    )
    assert len(weights) == len(here) == 2
    assert [path.read_bytes() for path in weights] == [path.read_bytes() for path in here]


# -- misuse


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--partition", "nowhere"], "[Ii]nvalid partition"),
        (["--account", "nobody"], "Invalid account"),
        (["--nodes", "8"], "SLURM would refuse"),
        (["--slurm", "gres=a b"], "no spaces"),
        (["--slurm", "wrap=id"], "unknown key of --slurm"),
    ],
)
def test_what_slurm_would_refuse_is_said_before_anything_is_submitted(
    idle_cluster: Cluster, tmp_path: Path, options: list[str], message: str
) -> None:
    done = grid(tmp_path, "--cluster", "slurm", *options)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr
    assert idle_cluster.call("squeue", "--noheader") == ""
    assert not list(tmp_path.glob("slurm/*/*"))
