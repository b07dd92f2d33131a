"""Faults of the whole grid: it is killed at random moments, and several grids race for one store."""

import functools
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from campaign import Fault

GRID = Path(__file__).parents[2] / "launchers" / "grid.py"
OPTIONS = ("--suite", "sample_efficiency", "--profile", "smoke", "--only", "train_fraction=0.0375")
BOARD = "leaderboards/sample_efficiency/smoke.convit_table2.csv"
LIMIT_S = 600.0


def run(store, timeout=LIMIT_S):
    """Run the grid; it is killed when its time is up."""
    command = [sys.executable, str(GRID), *OPTIONS, "--runs", str(store)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)


def outcome(store):
    """The leaderboard, and the digests of all weights."""
    results = [json.loads(path.read_text()) for path in store.glob("experiments/*/*/result.json")]
    board = store / BOARD
    return board.read_bytes() if board.exists() else b"", sorted(result["weights_sha256"] for result in results)


@functools.cache
def undisturbed():
    """The outcome of a grid that is left alone, and the seconds that it takes on this machine."""
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        done = run(Path(name))
        assert done.returncode == 0, done.stdout + done.stderr
        return outcome(Path(name)), time.monotonic() - began


def kill(tally, draw, folder):
    """Kill the grid five times at random moments; the sixth goes on to the end."""
    (expected, most_s), num_kills = undisturbed(), 0
    for _ in range(5):
        try:
            run(folder, timeout=draw.uniform(0.0, 0.6 * most_s))
        except subprocess.TimeoutExpired:
            num_kills += 1
    done = run(folder)
    assert done.returncode == 0, f"after {num_kills} kills: {done.stderr[-300:]}"
    assert outcome(folder) == expected, f"after {num_kills} kills"
    for _ in range(num_kills):
        tally.add(noticed=True, resumed=True, equal=True)


def race(num_grids, tally, draw, folder):
    """Start several grids at once: each run is trained by one of them, once; all end well, with nothing to notice."""
    expected, _ = undisturbed()
    with ThreadPoolExecutor(num_grids) as threads:
        codes = [done.returncode for done in threads.map(run, [folder] * num_grids)]
    tries = [json.loads(path.read_text())["num_attempts"] for path in folder.glob("experiments/*/*/environment.json")]
    went_well = not any(codes) and set(tries) == {1}
    story = f"{num_grids} grids ended with {codes}, attempts {tries}"
    tally.judge(False, went_well, outcome(folder) == expected, story)


FAULTS = [
    Fault("grid killed", kill, rounds=12),
    Fault("two grids race", functools.partial(race, 2), rounds=10, in_tests=1),
    Fault("three grids race", functools.partial(race, 3), rounds=10),
]


@pytest.mark.campaign
def test_a_grid_that_is_killed_or_races_ends_with_the_leaderboard_of_an_undisturbed_one(play):
    play()
