"""Faults of the whole grid: it is killed at random moments, and several grids race for one store."""

import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from campaign import Fault

GRID = Path(__file__).parents[2] / "launchers" / "grid.py"
OPTIONS = ("--suite", "sample_efficiency", "--profile", "smoke", "--only", "train_fraction=0.03125")
BOARD = "leaderboards/sample_efficiency/smoke.convit_table2.csv"
LIMIT_S = 600.0


def start(store):
    command = [sys.executable, str(GRID), *OPTIONS, "--runs", str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def wait(grid):
    """Exit code and output; a grid that hangs is killed."""
    try:
        output = grid.communicate(timeout=LIMIT_S)[0]
    finally:
        grid.kill()
    return grid.wait(), output


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
        code, output = wait(start(Path(name)))
        assert code == 0, output
        return outcome(Path(name)), time.monotonic() - began


def kill(tally, draw, folder):
    """Kill the grid five times at random moments; the sixth goes on to the end."""
    (expected, most_s), num_kills = undisturbed(), 0
    for _ in range(5):
        grid = start(folder)
        try:
            grid.communicate(timeout=draw.uniform(0.0, 0.6 * most_s))
        except subprocess.TimeoutExpired:
            grid.kill()
            grid.communicate()
            num_kills += 1
    code, output = wait(start(folder))
    assert code == 0, f"after {num_kills} kills: {output[-300:]}"
    assert outcome(folder) == expected, f"after {num_kills} kills"
    for _ in range(num_kills):
        tally.add(noticed=True, resumed=True, equal=True)


def race(num_grids, tally, draw, folder):
    """Start several grids at once: each run is trained by one of them, once; all end well, with nothing to notice."""
    expected, _ = undisturbed()
    grids = [start(folder) for _ in range(num_grids)]
    codes = [wait(grid)[0] for grid in grids]
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
