"""A run whose process is stopped in mid-training is ended by the pool beside it, and goes on from its checkpoint."""

import os
import signal
import time
from pathlib import Path

import pytest

from launchers import grid
from launchers.core.plan import make_plan
from launchers.local.pool import LocalPool
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store import heartbeat
from suite.store.attempts import read_attempts

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 20.0, "batch_size": 32, "warmup_epochs": 1.5})
EXPERIMENT = Experiment(model="deit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)


def ranks_of(path):
    """The processes that train this run, the one that the pool started last."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "suite.execute" in command and str(path) in command:
            found.append(int(folder.name))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_stopped_rank_is_noticed_and_the_run_goes_on(tmp_path, monkeypatch, num_ranks):
    monkeypatch.setattr(heartbeat, "LEAST_TIMEOUT_S", 4.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    resources = Resources(num_ranks=num_ranks, checkpoint_every_s=0.1)
    with grid._fork_server(resources) as server:
        pool = LocalPool(make_plan([EXPERIMENT], tmp_path, resources), max_parallel=1, server=server)
        (run,) = pool.runs
        end, stopped = time.monotonic() + 240, False
        while pool.poll() and time.monotonic() < end:
            time.sleep(0.02)
            if not stopped and run.job.directory.last_metrics().get("step", 0) >= 40:
                os.kill(ranks_of(run.job.directory.path)[0], signal.SIGSTOP)
                stopped = True
        pool.stop(1.0)
    assert stopped
    assert (run.state, run.num_restarts) == ("done", 1)
    assert "it hung: no step for " in run.problem
    tried = read_attempts(run.job.directory)
    assert [attempt.end for attempt in tried] == ["lost", "finished"]
    assert tried[1].from_step > 0
