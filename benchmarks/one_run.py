"""A run in a process of its own, as grids start it, and the speed that it logs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory


def train(folder: Path, experiment: Experiment, resources: Resources) -> RunDirectory:
    """Train an experiment in a folder that holds no run yet.

    Raises:
        RuntimeError: the run failed; the message ends with its last output.
    """
    run = RunDirectory(folder)
    run.create(experiment)
    command = [sys.executable, "-m", "suite.execute", str(folder), "--resources", resources.model_dump_json()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    if done.returncode:
        raise RuntimeError(f"suite.execute ended with exit status {done.returncode}:\n{done.stdout[-2000:]}")
    return run


def images_per_s(run: RunDirectory) -> list[float]:
    """The rate in each line of the run's metrics that has one."""
    return [line["images_per_s"] for line in run.read_metrics() if "images_per_s" in line]
