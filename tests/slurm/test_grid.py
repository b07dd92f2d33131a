"""A grid on a real cluster, through all that clusters do, ends with the leaderboard of an undisturbed local grid."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster

from suite.attempts import read_attempts
from suite.heartbeat import read_beat
from suite.records import RunDirectory
from suite.suites import get_suite

ROOT = Path(__file__).parents[2]
SUITE = "sample_efficiency"
ALL_IN_ONE_JOB = ["--runs-per-job", "10"]
SMALLEST_FRACTION = ["--only", "train_fraction=0.02"]
RUNS = [RunDirectory.of(Path(), e).path for e in get_suite(SUITE).profile("smoke").experiments()]


def grid(store: Path, *options: str, profile: str = "smoke", suite: str = SUITE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", suite, "--profile", profile]
    command += ["--runs", str(store), *options]
    environment = {**os.environ, "COLUMNS": "400"}  # no words are broken over lines
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)


def served_state(store: Path) -> dict[str, Any]:
    """What the live page shows that looks on from here, a login node."""
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", SUITE, "--profile", "smoke", "--runs"]
    command += [str(store), "--cluster", "slurm", "--status", "--serve", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as looking:
        assert looking.stdout is not None
        url = looking.stdout.readline().split()[-1]
        found: list[dict[str, Any]] = []

        def ask() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}state.json", timeout=300) as answer:
                found.append(json.load(answer))
            return bool(found)

        try:
            wait_for(ask, 300)
        finally:
            looking.terminate()
    return found[0]


def on_slurm(store: Path, *options: str, suite: str = SUITE) -> str:
    done = grid(store, "--cluster", "slurm", *options, suite=suite)
    assert done.returncode == 0, done.stdout + done.stderr + logs(store)
    return done.stdout


def logs(store: Path) -> str:
    return "\n".join(path.read_text()[-1500:] for path in [*store.glob("slurm/*/*log.out"), *store.glob("**/log.txt")])


def leaderboard(store: Path, profile: str = "smoke", suite: str = SUITE) -> bytes:
    """The suite's tables in the paper's layout, one after the other."""
    folder = store / "leaderboards" / suite
    return b"".join((folder / f"{profile}.{table.name}.csv").read_bytes() for table in get_suite(suite).tables)


def wait_for(what: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def a_run_in_mid_training(store: Path, paths: Sequence[Path] = RUNS) -> RunDirectory:
    """Wait until some run is past a checkpoint and far from its end."""
    found: list[RunDirectory] = []

    def look() -> bool:
        for path in paths:
            run = RunDirectory(store / path)
            if run.newest_checkpoint() and run.last_metrics().get("step", 60) < 40:
                found.append(run)
                return True
        return False

    wait_for(look)
    return found[0]


def knows_its_pace(run: RunDirectory) -> bool:
    """Whether everything that is still to come has been done once, so that its watch knows how long it takes."""
    beat = read_beat(run)
    return beat is not None and {"training", "evaluation", "checkpoint"} <= beat.slowest_s.keys()


def node_of(cluster: Cluster) -> str:
    return cluster.call("squeue", "--noheader", "--states=R", "--format=%N").split()[0]


def job_of(cluster: Cluster) -> str:
    return cluster.call("squeue", "--noheader", "--states=R", "--format=%i").split()[0]


def all_attempts(store: Path) -> list[list[str]]:
    """How each run's attempts ended, in the order in which the runs were submitted."""
    return [[str(attempt.end) for attempt in read_attempts(RunDirectory(store / path))] for path in RUNS]


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


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The leaderboard of the same grid on this machine."""
    store = tmp_path_factory.mktemp("local")
    done = grid(store)
    assert done.returncode == 0, done.stdout + done.stderr
    return leaderboard(store)


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


def test_a_challenger_s_file_reaches_the_nodes_though_it_is_gone_once_it_is_submitted(
    idle_cluster: Cluster, tmp_path: Path
) -> None:
    model = tmp_path / "linear.py"
    model.write_text(
        "from torch import nn\n"
        "def linear(*, num_classes, image_size):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(3 * image_size**2, num_classes))\n"
    )
    few = ["--only", "model=mine", "train_fraction=0.03125"]
    on_slurm(tmp_path, "--detach", "--challenger", f"mine={model}:linear", *few)
    model.unlink()
    idle_cluster.wait_idle()
    (run,) = tmp_path.glob("experiments/mine-*/seed-0")
    assert (run / "result.json").exists(), logs(tmp_path)
    assert b"mine_top1" in leaderboard(tmp_path)


def test_the_last_job_builds_the_leaderboard_when_nobody_watches(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    idle_cluster.wait_idle()
    assert leaderboard(tmp_path) == local


@pytest.mark.fault
def test_a_lost_node_s_runs_go_on_elsewhere_and_are_never_called_failed(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.power_cut(node_of(idle_cluster))
    for _ in range(3):
        assert "failed" not in grid(tmp_path, "--status").stdout
        time.sleep(1)
    on_slurm(tmp_path)
    assert leaderboard(tmp_path) == local
    assert ["lost", "finished"] in all_attempts(tmp_path)


@pytest.mark.fault
def test_a_preempted_run_writes_a_checkpoint_and_goes_on(idle_cluster: Cluster, tmp_path: Path, local: bytes) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("sbatch", "--partition=high", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=sleep 3")
    on_slurm(tmp_path)
    assert leaderboard(tmp_path) == local
    tried = [attempt for path in RUNS for attempt in read_attempts(RunDirectory(tmp_path / path))]
    assert {attempt.restarts for attempt in tried} == {0, 1}
    assert all(attempt.why == "preempted" for attempt in tried if attempt.end == "interrupted")
    assert sum(attempt.end != "finished" for attempt in tried) <= 1  # but for the one that was hit, none ran twice


@pytest.mark.fault
def test_a_job_longer_than_its_time_limit_is_requeued_until_it_is_done(idle_cluster: Cluster, tmp_path: Path) -> None:
    many = ["--only", "model=convit_micro", "train_fraction=0.4", "--seeds", "40"]  # a job of over a minute, idle
    on_slurm(tmp_path, *many, "--runs-per-job", "40", "--time-min", str(shortest_limit_min()))
    runs = [RunDirectory(path) for path in tmp_path.glob("experiments/*/*")]
    tried = {run.path.name: [(a.end, a.why) for a in read_attempts(run)] for run in runs}
    cut = [name for name, ends in tried.items() if ("interrupted", "time limit") in ends]
    assert len(runs) == 40
    assert cut
    seed = cut[0].removeprefix("seed-")
    assert grid(tmp_path / "here", *many, "--only", f"seed={seed}").returncode == 0
    (same,) = tmp_path.glob("here/experiments/*/*/weights.safetensors")
    assert same.read_bytes() == (runs[0].path.parent / cut[0] / "weights.safetensors").read_bytes()


@pytest.mark.fault
def test_a_job_that_is_requeued_by_hand_while_the_controller_restarts_goes_on(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("scontrol", "requeue", job_of(idle_cluster))
    idle_cluster.restart_controller()
    on_slurm(tmp_path)
    assert leaderboard(tmp_path) == local


def test_cancelled_jobs_stay_away_until_the_grid_is_started_again(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    assert "cancelled 1 jobs" in grid(tmp_path, "--cancel").stdout
    idle_cluster.wait_idle()
    said = grid(tmp_path, "--status").stdout
    assert "cancelled" in said
    assert "failed" not in said
    on_slurm(tmp_path)
    assert leaderboard(tmp_path) == local


def test_two_grids_at_once_submit_every_run_once(idle_cluster: Cluster, tmp_path: Path, local: bytes) -> None:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", SUITE, "--profile", "smoke"]
    command += ["--runs", str(tmp_path), "--cluster", "slurm", *ALL_IN_ONE_JOB]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("submitted 10 runs" in text for text in said) == [False, True]
    assert leaderboard(tmp_path) == local
    assert all_attempts(tmp_path) == [["finished"]] * 10


def test_grid_py_may_be_left_with_ctrl_c(idle_cluster: Cluster, tmp_path: Path, local: bytes) -> None:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", SUITE, "--profile", "smoke"]
    command += ["--runs", str(tmp_path), "--cluster", "slurm", *ALL_IN_ONE_JOB]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    a_run_in_mid_training(tmp_path)
    process.send_signal(signal.SIGINT)
    assert "the jobs go on" in process.communicate(timeout=60)[0]
    idle_cluster.wait_idle()
    assert leaderboard(tmp_path) == local


def test_a_job_that_the_user_cancels_with_scancel_stays_away(idle_cluster: Cluster, tmp_path: Path) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    idle_cluster.call("scancel", job_of(idle_cluster))
    idle_cluster.wait_idle()
    assert len(list(tmp_path.glob("experiments/*/*/result.json"))) < 10


# -- nodes that fail quietly


@pytest.fixture
def node_without_torch(idle_cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """A node on which the folder of torch is empty."""
    folder = Path(importlib.util.find_spec("torch").origin).parent
    (tmp_path / "empty").mkdir()
    if idle_cluster.settings.mode != "namespaces":
        pytest.skip("nodes of this cluster share their files")
    idle_cluster.run_on("node1", ["mount", "--bind", tmp_path / "empty", folder], check=True)
    yield "node1"
    idle_cluster.run_on("node1", ["umount", folder], check=True)


@pytest.mark.fault
def test_a_node_that_cannot_import_torch_is_named_and_left_out_and_the_grid_goes_on(
    node_without_torch: str, tmp_path: Path, local: bytes
) -> None:
    said = on_slurm(tmp_path / "store")
    assert re.search(r"node1 could not begin \d jobs, and is left out: .*torch.*; see /.*_log.out", said)
    assert leaderboard(tmp_path / "store") == local
    begun = [attempt for path in RUNS for attempt in read_attempts(RunDirectory(tmp_path / "store" / path))]
    assert "node1" not in {attempt.host for attempt in begun}
    (starts,) = (tmp_path / "store").glob("slurm/*/starts.jsonl")
    lost = [json.loads(line) for line in starts.read_text().splitlines()]
    assert {start["node"] for start in lost} == {"node1"}
    assert len(lost) <= 4  # it has room for three jobs at once


@pytest.mark.fault
@pytest.mark.parametrize("cut_off", [Cluster.kill_slurmd, Cluster.unplug])
def test_a_run_that_lives_on_where_slurm_lost_the_node_is_waited_for(
    idle_cluster: Cluster, tmp_path: Path, local: bytes, cut_off: Callable[[Cluster, str], None]
) -> None:
    if cut_off is Cluster.unplug and idle_cluster.settings.mode != "namespaces":
        pytest.skip("nodes of this cluster have no cables")
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB)
    a_run_in_mid_training(tmp_path)
    node = node_of(idle_cluster)
    cut_off(idle_cluster, node)
    with stopped(tmp_path):  # it holds its claim until it is let go on
        wait_for(lambda: '"held"' in "".join(path.read_text() for path in tmp_path.glob("slurm/*/starts.jsonl")), 300)
        said = grid(tmp_path, "--status").stdout
        assert re.search(rf"held by a process on {node} of job \d+_0", said), said
        assert "failed" not in said
    on_slurm(tmp_path)
    assert leaderboard(tmp_path) == local
    assert not any("failed" in ends for ends in all_attempts(tmp_path))


# -- runs that need others

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
    idle_cluster.wait_idle(timeout_s=300)  # SLURM lets a requeued job rest for a while
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


# -- several nodes in one run

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
    wait_for(run.failure_path.exists, 120)  # a minute is the least that is waited
    node = re.search(r"rank 1 on (node\d) hung: no step for .*; its process is stopped", run.read_failure().reason)
    assert node
    on_slurm(tmp_path, *TWO_NODES)
    assert losses(tmp_path) == pytest.approx(two_ranks, abs=1e-5)
    assert len(read_attempts(run)) == 2


@pytest.mark.fault
def test_a_job_whose_processes_are_all_stopped_until_its_time_limit_goes_on_too(
    idle_cluster: Cluster, tmp_path: Path, local: bytes
) -> None:
    on_slurm(tmp_path, "--detach", *ALL_IN_ONE_JOB, "--time-min", "6")
    a_run_in_mid_training(tmp_path)
    assert len(stop(tmp_path)) == 2  # what watches, and what is watched
    idle_cluster.wait_idle(timeout_s=1800)  # six minutes of them stopped; the rest takes as long as other work lets it
    assert leaderboard(tmp_path) == local


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
    return f"SLURM_PROCID={rank}" in environment and store in command and "launchers.node" in of_parent


def stop(store: Path) -> list[int]:
    """Stop the processes of jobs that train runs of the store; returns them."""
    found = [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if is_of_task(folder, str(store))]
    for process in found:
        os.kill(process, signal.SIGSTOP)
    return found


@contextlib.contextmanager
def stopped(store: Path) -> Iterator[None]:
    processes = stop(store)
    assert processes
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):  # the cluster has ended it
                os.kill(process, signal.SIGCONT)


def is_of_task(process: Path, store: str) -> bool:
    """Whether this is one of a job's processes that train runs of the store."""
    try:
        command = (process / "cmdline").read_bytes().decode().split("\0")
    except (OSError, UnicodeDecodeError):
        return False
    return store in command and "launchers.node" in command and command[0] == sys.executable


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


def test_laptop_runs_on_several_nodes_end_with_the_local_leaderboard(idle_cluster: Cluster, tmp_path: Path) -> None:
    """Two of the ten: all train as many steps by the same code, so that the others would add minutes alone."""
    from imagesets.fetch import default_data_dir

    if not (default_data_dir() / "cifar10.safetensors").exists():
        pytest.skip("CIFAR-10 is not there; fetch it with `python -m imagesets cifar10`")
    store = tmp_path / "slurm-store"
    done = grid(store, "--cluster", "slurm", *SMALLEST_FRACTION, profile="laptop")
    assert done.returncode == 0, done.stdout + done.stderr + logs(store)
    assert grid(tmp_path / "local", *SMALLEST_FRACTION, profile="laptop").returncode == 0
    assert leaderboard(store, "laptop") == leaderboard(tmp_path / "local", "laptop")
    assert len(list(store.glob("experiments/*/*/result.json"))) == 2
