"""The cluster that other tests rely on is a real one: it runs, refuses, preempts and requeues as SLURM does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cluster import Cluster
from processes import wait_until


def submit(cluster: Cluster, folder: Path, script: str, *options: str) -> str:
    """Submit a script that runs in this folder and return the job's id."""
    file = folder / "job.sh"
    file.write_text(f"#!/bin/bash\n{script}\n")
    return cluster.call("sbatch", "--parsable", f"--chdir={folder}", f"--output={folder}/%j.out", *options, file)


def wait_for_accounting(cluster: Cluster, job_id: str, states: list[str]) -> None:
    """Wait until accounting, which learns of everything a moment later, has these states of the job's attempts."""
    command = ["sacct", "--allocations", "--duplicates", "--noheader", f"--jobs={job_id}", "--format=state"]
    wait_until(lambda: cluster.call(*command).split() == states, 30, f"accounting to have {states} of job {job_id}")


def contains(file: Path, text: str) -> bool:
    return file.exists() and text in file.read_text()


def test_a_new_cluster_has_four_idle_nodes(idle_cluster: Cluster) -> None:
    assert idle_cluster.node_states() == {"node1": "idle", "node2": "idle", "node3": "idle", "node4": "idle"}


def test_a_step_on_two_nodes_runs_on_two_nodes(idle_cluster: Cluster) -> None:
    variable = "SLURMD_NODENAME" if idle_cluster.settings.mode == "flat" else "HOSTNAME"
    printed = idle_cluster.call("srun", "--nodes=2", "bash", "-c", f"echo ${variable}")
    assert set(printed.splitlines()) == {"node1", "node2"}


def test_a_node_knows_its_name_and_finds_the_others(idle_cluster: Cluster) -> None:
    if idle_cluster.settings.mode == "namespaces":
        assert idle_cluster.run_on("node2", ["hostname"]).stdout.strip() == "node2"
    assert idle_cluster.run_on("node2", ["getent", "hosts", "node3"]).returncode == 0
    with pytest.raises(ValueError, match="no node is called 'node9'"):
        idle_cluster.run_on("node9", ["hostname"])


def test_a_job_sees_the_gpus_that_it_asked_for(idle_cluster: Cluster) -> None:
    assert idle_cluster.call("srun", "--gpus=2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1"


def test_accounting_knows_how_a_job_ended(idle_cluster: Cluster, tmp_path: Path) -> None:
    good = submit(idle_cluster, tmp_path, "true")
    bad = submit(idle_cluster, tmp_path, "exit 3")
    wait_for_accounting(idle_cluster, good, ["COMPLETED"])
    wait_for_accounting(idle_cluster, bad, ["FAILED"])
    fields = idle_cluster.call("sacct", "-X", "--noheader", "--parsable2", f"--jobs={bad}", "--format=account,exitcode")
    assert fields == "lab|3:0"


@pytest.mark.parametrize("option", ["--account=lab", "--qos=normal", "--partition=high", "--gpus-per-node=8"])
def test_sbatch_accepts_what_the_cluster_has(idle_cluster: Cluster, option: str) -> None:
    idle_cluster.call("sbatch", "--test-only", option, "--wrap=true")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--account=nobody", "Invalid account"),
        ("--qos=nonsense", "Invalid qos"),
        ("--partition=nonsense", "Invalid partition"),
        ("--gpus-per-node=9", "node configuration is not available"),
    ],
)
def test_sbatch_refuses_what_the_cluster_does_not_have(idle_cluster: Cluster, option: str, complaint: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        idle_cluster.call("sbatch", "--test-only", option, "--wrap=true")
    assert complaint in refusal.value.stderr


def test_a_job_whose_node_loses_power_starts_again_elsewhere(idle_cluster: Cluster, tmp_path: Path) -> None:
    script = 'echo attempt ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'
    job_id = submit(idle_cluster, tmp_path, script, "--open-mode=append")
    output = tmp_path / f"{job_id}.out"
    wait_until(lambda: contains(output, "attempt 0"), 30, "the job's first line")
    first_node = output.read_text().split()[-1]
    idle_cluster.power_cut(first_node)
    wait_until(lambda: contains(output, "attempt 1"), 90, "the second attempt")
    assert output.read_text().splitlines()[1] != f"attempt 1 on {first_node}"
    wait_for_accounting(idle_cluster, job_id, ["NODE_FAIL", "COMPLETED"])
    assert idle_cluster.node_states()[first_node] == "down*"
    idle_cluster.boot(first_node)
    idle_cluster.wait_idle()


def test_a_node_whose_cable_was_out_until_it_counted_as_down_is_back_at_once(idle_cluster: Cluster) -> None:
    if idle_cluster.settings.mode != "namespaces":
        pytest.skip("nodes of this cluster have no cables")
    idle_cluster.unplug("node1")
    wait_until(lambda: idle_cluster.node_states()["node1"] == "down*", 90, "a node that counts as down")
    idle_cluster.reset(timeout_s=30)


def test_a_job_outlives_its_slurmd_and_the_controller(idle_cluster: Cluster, tmp_path: Path) -> None:
    script = "echo started; until [ -e go ]; do sleep 0.1; done"
    job_id = submit(idle_cluster, tmp_path, script, "--nodelist=node2")
    wait_until(lambda: contains(tmp_path / f"{job_id}.out", "started"), 30, "the job's first line")
    idle_cluster.kill_slurmd("node2")
    idle_cluster.restart_controller()
    assert idle_cluster.job_state(job_id) == "RUNNING"
    idle_cluster.boot("node2")
    (tmp_path / "go").touch()
    wait_for_accounting(idle_cluster, job_id, ["COMPLETED"])


def test_a_preempted_job_gets_its_signal_and_starts_again(idle_cluster: Cluster, tmp_path: Path) -> None:
    script = """
        [ -z "$SLURM_RESTART_COUNT" ] || { echo again; exit; }
        trap 'echo signalled' USR1
        echo started
        while :; do sleep 0.1; done
    """
    where = ["--nodelist=node1", "--exclusive"]
    low = submit(idle_cluster, tmp_path, script, *where, "--signal=B:USR1@60", "--time=60", "--open-mode=append")
    output = tmp_path / f"{low}.out"
    wait_until(lambda: contains(output, "started"), 30, "the job's first line")
    high = submit(idle_cluster, tmp_path, "true", *where, "--partition=high")
    wait_for_accounting(idle_cluster, low, ["PREEMPTED", "COMPLETED"])
    wait_for_accounting(idle_cluster, high, ["COMPLETED"])
    own_lines = [line for line in output.read_text().splitlines() if not line.startswith("slurmstepd")]
    assert own_lines == ["started", "signalled", "again"]
