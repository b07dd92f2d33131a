"""Grids on the test cluster: to start them, to wait for their runs, to stop these, and to read what they leave."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cluster import Cluster

from suite.papers import get_suite
from suite.store.attempts import read_attempts
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
SUITE = "sample_efficiency"
FOUR = ["--only", "train_fraction=0.2", "train_fraction=0.4"]
FOUR_IN_ONE_JOB = [*FOUR, "--runs-per-job", "4"]
# What users' environments and an outer job hold: each would hide jobs, or change them, if it reached SLURM's programs.
HOSTILE = {
    "SQUEUE_PARTITION": "high", "SQUEUE_STATES": "CD", "SQUEUE_USERS": "daemon", "SQUEUE_FORMAT": "%i",
    "SBATCH_PARTITION": "high", "SBATCH_TIMELIMIT": "1", "SBATCH_JOB_NAME": "mine", "SBATCH_ARRAY_INX": "0",
    "SBATCH_WAIT": "1", "SBATCH_NO_REQUEUE": "1", "SBATCH_EXPORT": "NONE", "SBATCH_ACCOUNT": "nobody",
    "SLURM_JOB_ID": "999999", "SLURM_MEM_PER_CPU": "1", "SLURM_CPU_BIND": "mask_cpu:0xF0", "SLURM_NTASKS": "4",
    "SLURM_GRES": "gpu:9", "SLURM_NNODES": "3", "SLURM_TIME_FORMAT": "%s", "SLURM_CLUSTERS": "nowhere",
    "SRUN_CPUS_PER_TASK": "9", "SRUN_EXPORT_ENV": "NONE", "SACCT_FORMAT": "user", "SCANCEL_STATE": "SUSPENDED",
    "SCANCEL_PARTITION": "high", "SINFO_PARTITION": "nowhere", "SINFO_FORMAT": "%P",
}  # fmt: skip
ASK_SLURM = {"--cluster", "--status", "--cancel"}
RUNS = [RunDirectory.of(Path(), e).path for e in get_suite(SUITE).profile("smoke").experiments()]


def grid(store: Path, *options: str, profile: str = "smoke", suite: str = SUITE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", suite, "--profile", profile]
    command += ["--runs", str(store), *options]
    environment = {**os.environ, "COLUMNS": "400"}  # no words are broken over lines
    environment |= HOSTILE if ASK_SLURM & set(options) else {}
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)


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


def served_state(store: Path) -> dict[str, Any]:
    """The state that the live page shows, which looks on from here, a login node."""
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
            wait_for(ask)
        finally:
            looking.terminate()
    return found[0]


def wait_for(what: Callable[[], object], seconds: float = 300.0) -> None:
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


def node_of(cluster: Cluster) -> str:
    return cluster.call("squeue", "--noheader", "--states=R", "--format=%N").split()[0]


def job_of(cluster: Cluster) -> str:
    return cluster.call("squeue", "--noheader", "--states=R", "--format=%i").split()[0]


def all_attempts(store: Path) -> list[list[str]]:
    """How the attempts of each of the ten runs ended; none of one that was not begun."""
    return [[str(attempt.end) for attempt in read_attempts(RunDirectory(store / path))] for path in RUNS]


def stop(store: Path) -> list[int]:
    """Stop the processes of jobs that train runs of the store; returns them."""
    found = [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if is_of_task(folder, str(store))]
    for process in found:
        os.kill(process, signal.SIGSTOP)
    return found


def all_restarts(store: Path) -> set[int]:
    """After how many restarts of their jobs the ten runs' attempts began."""
    return {attempt.restarts for path in RUNS for attempt in read_attempts(RunDirectory(store / path))}


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
    return store in command and "launchers.slurm.job" in command and command[0] == sys.executable
