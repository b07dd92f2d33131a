"""Faults of the whole grid: it is killed at random moments, and several grids race for one store."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fault_counts import Counts, Fault, judge

_GRID = Path(__file__).resolve().parents[1] / "launchers/grid.py"
_OPTIONS = ("--suite", "sample_efficiency", "--profile", "smoke", "--only", "train_fraction=0.03125")
_BOARD = "leaderboards/sample_efficiency/smoke.convit_table2.csv"
_LIMIT_S = 600.0

Outcome = tuple[bytes, list[str]]


def _start(store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(_GRID), *_OPTIONS, "--runs", str(store)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )


def _wait(grids: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    try:
        outputs = [grid.communicate(timeout=_LIMIT_S)[0] for grid in grids]
        return [(grid.returncode, output) for grid, output in zip(grids, outputs, strict=True)]
    finally:
        for grid in grids:
            grid.kill()
            grid.wait()


def _outcome(store: Path) -> Outcome:
    results = [json.loads(path.read_text(encoding="utf-8")) for path in store.glob("experiments/*/*/result.json")]
    board = store / _BOARD
    return board.read_bytes() if board.exists() else b"", sorted(result["weights_sha256"] for result in results)


@functools.cache
def undisturbed() -> tuple[Outcome, float]:
    """The leaderboard and the weights of a grid that is left alone, and the seconds that it takes on this machine."""
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        ((code, output),) = _wait([_start(Path(name))])
        if code:
            raise RuntimeError(f"the undisturbed grid ended with {code}: {output}")
        return _outcome(Path(name)), time.monotonic() - began


def kill(draw: Random, folder: Path) -> Counts:
    """Kill the grid five times at random moments; the sixth goes on to the end."""
    (expected, most_s), num_kills = undisturbed(), 0
    for _ in range(5):
        grid = _start(folder)
        try:
            grid.communicate(timeout=draw.uniform(0.0, 0.6 * most_s))
        except subprocess.TimeoutExpired:
            grid.send_signal(signal.SIGKILL)
            num_kills += 1
            grid.communicate()
    ((code, output),) = _wait([_start(folder)])
    last = judge(True, code == 0, _outcome(folder) == expected, f"after {num_kills} kills: {code}, {output[-300:]}")
    return Counts(num_kills, num_kills, num_kills * (last.resumed or 0), num_kills * (last.equal or 0), last.lost,
                  last.stories)  # fmt: skip


def race(num_grids: int, draw: Random, folder: Path) -> Counts:
    """Start several grids at once: each run is trained by one of them, once; all end well, with nothing to notice."""
    expected, _ = undisturbed()
    ended = _wait([_start(folder) for _ in range(num_grids)])
    tries = [
        json.loads(path.read_text(encoding="utf-8"))["num_attempts"]
        for path in folder.glob("experiments/*/*/environment.json")
    ]
    went_well = all(code == 0 for code, _ in ended) and set(tries) == {1}
    story = f"{num_grids} grids ended with {[code for code, _ in ended]}, attempts {tries}"
    return judge(False, went_well, _outcome(folder) == expected, story)


def faults() -> list[Fault]:
    """Fifty kills at least, and two and three grids on one store."""
    return [
        Fault("grid killed", kill, rounds=12),
        Fault("two grids race", functools.partial(race, 2), rounds=10, rounds_in_tests=1),
        Fault("three grids race", functools.partial(race, 3), rounds=10),
    ]
