"""The whole path from the command line to the leaderboard, on packaged real images (profile smoke)."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEW = ["--only", "train_fraction=0.05", "train_fraction=0.1"]  # four of the ten runs


def grid_command(store, *options):
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", "sample_efficiency", "--profile", "smoke"]
    return [*command, "--runs", str(store), *options]


def run_grid(store, *options):
    return subprocess.run(grid_command(store, *options), capture_output=True, text=True, timeout=300)


def leaderboard(store):
    return (store / "leaderboards/sample_efficiency/smoke.csv").read_bytes()


def attempts(store):
    return [json.loads(path.read_text())["num_attempts"] for path in store.glob("experiments/*/*/environment.json")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A store with four finished runs, and what the grid printed."""
    store = tmp_path_factory.mktemp("undisturbed")
    return store, run_grid(store, *FEW)


def test_a_grid_trains_what_is_asked_and_builds_the_leaderboard(undisturbed):
    store, done = undisturbed
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 runs: 4 new" in done.stdout
    assert len(list(store.glob("experiments/*/seed-0/result.json"))) == 4
    rows = [line.split(",") for line in leaderboard(store).decode().splitlines()]
    assert rows[0][0] == "train_size_percent"
    assert [row[0] for row in rows[1:]] == ["5", "10", "30", "50", "100"]
    assert all(rows[1][1:])
    assert not any(rows[3][1:])  # not trained: empty, never invented


def test_a_finished_run_is_never_trained_again(undisturbed):
    store, _ = undisturbed
    before = leaderboard(store)
    again = run_grid(store, *FEW)
    assert "4 finished" in again.stdout
    assert attempts(store) == [1] * 4
    assert leaderboard(store) == before


def test_a_grid_killed_five_times_at_random_ends_with_the_same_bytes(undisturbed, tmp_path):
    rng = random.Random(1)
    for _ in range(5):
        process = subprocess.Popen(grid_command(tmp_path, *FEW), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 6))
        process.send_signal(signal.SIGKILL)
        process.wait()
    last = run_grid(tmp_path, *FEW)
    assert last.returncode == 0, last.stdout + last.stderr
    assert leaderboard(tmp_path) == leaderboard(undisturbed[0])


def test_two_grids_at_once_train_no_experiment_twice(undisturbed, tmp_path):
    grids = [subprocess.Popen(grid_command(tmp_path, *FEW), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [grid.communicate(timeout=300)[0] for grid in grids]
    assert [grid.returncode for grid in grids] == [0, 0], outputs
    assert attempts(tmp_path) == [1] * 4
    assert leaderboard(tmp_path) == leaderboard(undisturbed[0])


def test_one_failed_run_stops_no_other_and_its_cell_says_why(undisturbed, tmp_path):
    store, _ = undisturbed
    run = next(path.parent for path in store.glob("experiments/convit_micro-*/seed-0/result.json"))
    copy = tmp_path / "experiments"
    subprocess.run(["cp", "-r", str(store / "experiments"), str(copy)], check=True)
    broken = copy / run.relative_to(store / "experiments") / "result.json"
    broken.write_text(broken.read_text()[:100])
    done = run_grid(tmp_path, *FEW)
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert str(broken) in done.stdout.replace("\n", "")
    assert "failed" in (tmp_path / "leaderboards/sample_efficiency/smoke.md").read_text()
    retried = run_grid(tmp_path, *FEW, "--retry-failed")
    assert retried.returncode == 0, retried.stdout
    assert leaderboard(tmp_path) == leaderboard(store)


def test_a_killed_run_is_resumed_by_the_same_grid(tmp_path):
    grid = subprocess.Popen(grid_command(tmp_path, "--only", "train_fraction=0.05"), stdout=subprocess.PIPE, text=True)
    victim = None
    while victim is None and grid.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "suite.execute" in command and str(tmp_path) in command and "convit" in command:
                victim = int(folder.name)
        time.sleep(0.05)
    os.kill(victim, signal.SIGKILL)
    output = grid.communicate(timeout=300)[0]
    assert grid.returncode == 0, output
    assert re.search(r"restarted .*convit_micro.*killed by SIGKILL", output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--suite", "sample_eficiency"], "Did you mean 'sample_efficiency'"),
        (["--profile", "labtop"], "Did you mean 'laptop'"),
        (["--only", "modl=deit_micro"], "Did you mean 'model'"),
        (["--only", "model=deit_mikro"], "Did you mean 'deit_micro'"),
        (["--only", "model"], "expected KEY=VALUE"),
        (["--seeds", "0"], "not a positive number"),
    ],
)
def test_misuse_exits_2_with_the_valid_choices(tmp_path, options, message):
    done = run_grid(tmp_path, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_prints_the_cost_and_starts_nothing(tmp_path):
    done = run_grid(tmp_path, "--profile", "paper", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "GPU-hours" in done.stdout
    assert list(tmp_path.iterdir()) == []
