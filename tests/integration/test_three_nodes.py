"""Grids on three nodes over one store are a cluster: two are killed, and the third ends all runs, each once.

A node has a hostname, processes and mounts of its own, where this machine allows that; else it is a process.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.papers import get_suite
from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
GRID = [sys.executable, ROOT / "launchers/grid.py", "--suite", "sample_efficiency", "--profile", "smoke"]
FOUR = ["--max-parallel", "1", "--only", "train_fraction=0.0375", "train_fraction=0.4"]
CHOSEN = [e for e in get_suite("sample_efficiency").profile("smoke").experiments() if e.train_fraction in (0.0375, 0.4)]
NODE = ["unshare", "--uts", "--pid", "--ipc", "--mount", "--fork", "--kill-child", "--mount-proc"]
NAMED = [*NODE, "sh", "-c", 'hostname "$0" && exec "$@"']


def may_unshare():
    try:
        return subprocess.run([*NAMED, "a", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def has_namespaces():
    return may_unshare()


def leaderboard(store):
    return (store / "leaderboards/sample_efficiency/smoke.convit_table2.csv").read_bytes()


def start(store, node, has_namespaces):
    command = [*(["env"] if not has_namespaces else [*NAMED, node]), *GRID, *FOUR, "--runs", store]
    with (store / f"{node}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def test_of_three_nodes_two_are_killed_and_all_runs_end_once_with_the_right_results(tmp_path, has_namespaces):
    alone, store = tmp_path / "alone", tmp_path / "store"
    store.mkdir()
    subprocess.run([*GRID, *FOUR, "--runs", alone], check=True, capture_output=True, timeout=600)
    runs = [RunDirectory.of(store, experiment) for experiment in CHOSEN]
    nodes = {name: start(store, name, has_namespaces) for name in ("node-a", "node-b", "node-c")}
    deadline = time.monotonic() + 300
    while len(begun := {a.host for run in runs for a in read_attempts(run) if run.last_metrics()}) < (
        3 if has_namespaces else 1
    ):
        assert time.monotonic() < deadline, (store / "node-a.log").read_text()
        time.sleep(0.02)
    for name in ("node-a", "node-b"):
        os.killpg(nodes[name].pid, signal.SIGKILL)
        nodes[name].wait()
    assert nodes["node-c"].wait(timeout=600) == 0, (store / "node-c.log").read_text()
    assert not has_namespaces or begun == set(nodes)
    ends = [[attempt.end for attempt in read_attempts(run)] for run in runs]
    assert [of_run.count("finished") for of_run in ends] == [1] * 4
    assert all(of_run[-1] == "finished" for of_run in ends)
    assert {end for of_run in ends for end in of_run} <= {"finished", "lost"}
    assert leaderboard(store) == leaderboard(alone)
