"""Runs forked by a process that has the libraries loaded, against runs of a Python of their own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

from launchers.core.fork_server import ForkServer, process_state
from launchers.core.plan import make_plan
from launchers.local.pool import LocalPool, environment_of_runs
from suite.base.exit_codes import Exit
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 32, "drop_path": 0.2})
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)
LONG = EXPERIMENT.model_copy(update={"recipe": RECIPE.model_copy(update={"epochs": 1e4})})
GRID = """
import sys, time; from multiprocessing import forkserver
from pathlib import Path
from launchers.local.pool import LocalPool, environment_of_runs
from launchers.core.fork_server import ForkServer
from launchers.core.plan import make_plan
from suite.spec.experiment import Experiment; from suite.spec.resources import Resources
experiments = [Experiment.model_validate_json(text) for text in sys.argv[2:]]
resources = Resources()
with ForkServer(resources, environment_of_runs(resources)) as server:
    pool = LocalPool(make_plan(experiments, Path(sys.argv[1]), resources), len(experiments), server=server)
    print(forkserver._forkserver._forkserver_pid, flush=True)
    while pool.poll():
        time.sleep(0.02)
        if sorted(run.state for run in pool.runs) == ["failed", "running"]:
            break
        for run in pool.runs:
            run.num_restarts = 2  # a killed run stays so
    print(*(run.problem for run in pool.runs), flush=True)
    time.sleep(60)
"""


def run_pool(store, experiment, server):
    """Train one run by the pool; returns its directory."""
    pool = LocalPool(make_plan([experiment], store, Resources()), 1, server=server)
    while pool.poll():
        time.sleep(0.02)
    (run,) = pool.runs
    assert run.state == "done", (run.problem, run.job.directory.log_path.read_text())
    return run.job.directory


def without_times(metrics):
    times = ("images_per_s", "data_wait_percent")
    return [{key: value for key, value in line.items() if key not in times} for line in metrics]


FEW_FORKS = """
import os
fork, left = os.fork, [None] * {}
def fork_or_refuse():
    if not left:
        raise BlockingIOError(11, "no process is left")
    left.pop()
    return fork()
os.fork = fork_or_refuse
"""


@contextlib.contextmanager
def server_with_few_forks(folder, number):
    """A loaded server whose kernel grants no more processes than these; the first shows that it is loaded."""
    (folder / "sitecustomize.py").write_text(FEW_FORKS.format(number))
    environment = environment_of_runs(Resources())
    path = os.pathsep.join([str(folder), environment.get("PYTHONPATH", "")])
    with ForkServer(Resources(), {**environment, "PYTHONPATH": path}) as server:
        while server.is_loading:
            time.sleep(0.02)
        yield server


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run in a Python of its own, as every run is started that the server cannot fork."""
    folder = tmp_path_factory.mktemp("alone")
    with server_with_few_forks(folder, 1) as server:
        assert server.is_alive
        run = run_pool(folder / "runs", EXPERIMENT, server)
        assert not server.is_alive
    return run


def test_a_server_that_cannot_fork_costs_no_run(alone):
    assert alone.read_result().num_attempts == 1


def test_a_server_that_has_never_forked_is_asked_for_no_run(tmp_path):
    with server_with_few_forks(tmp_path, 0) as server:
        assert not server.is_alive


def test_a_forked_run_leaves_what_one_in_a_python_of_its_own_leaves(tmp_path, alone):
    resources = Resources()
    with ForkServer(resources, environment_of_runs(resources)) as server:
        forked = run_pool(tmp_path / "forked", EXPERIMENT, server)
        assert server.is_alive
    assert forked.weights_path.read_bytes() == alone.weights_path.read_bytes()
    assert without_times(forked.read_metrics()) == without_times(alone.read_metrics())
    assert forked.log_path.read_text() == "training steps 0 to 5\n"


def wait_until(happens):
    deadline = time.monotonic() + 120
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def step_of(run):
    return run.last_metrics().get("step", 0)


def pid_of(run):
    """By what ps shows of the run, once it trains."""
    wait_until(lambda: step_of(run))
    return int(subprocess.run(["pgrep", "-f", f"suite.execute {run.path}"], capture_output=True, text=True).stdout)


def is_gone(pid):
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "\nState:\tZ" in status.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="forked runs need Linux")
@pytest.mark.parametrize("has_server", [False, True])
def test_a_forked_run_dies_alone_stays_without_the_server_and_goes_with_the_grid(tmp_path, has_server):
    experiments = [LONG, LONG.with_seed(1)]
    command = [sys.executable, "-c", GRID, str(tmp_path), *(one.model_dump_json() for one in experiments)]
    grid = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    server = int(grid.stdout.readline())
    runs = [RunDirectory.of(tmp_path, one) for one in experiments]
    victim, other = (pid_of(run) for run in runs)
    assert [os.getsid(pid) for pid in (victim, other)] == [victim, other]
    assert [os.getpgid(pid) for pid in (victim, other)] == [victim, other]
    assert Path(f"/proc/{other}/fd/0").readlink() == Path(os.devnull)
    os.kill(victim, signal.SIGKILL)
    assert "was killed by SIGKILL" in grid.stdout.readline()
    if not has_server:
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: is_gone(server))
    before = step_of(runs[1])
    wait_until(lambda: step_of(runs[1]) > before)
    os.kill(other, signal.SIGSTOP)
    grid.kill()
    grid.wait()
    wait_until(lambda: is_gone(other) and is_gone(server))


def fork_and_wait(server, folder):
    run = server.fork(folder, {})
    while run.poll() is None:
        time.sleep(0.01)
    return run.poll()


def test_runs_that_have_ended_keep_no_descriptors_and_a_stopped_server_is_asked_for_none(tmp_path):
    resources = Resources()
    with ForkServer(resources, environment_of_runs(resources)) as server:
        while server.is_loading:
            time.sleep(0.02)
        assert fork_and_wait(server, tmp_path) == Exit.FAILED  # no experiment lies there
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            fork_and_wait(server, tmp_path)
        assert len(os.listdir("/proc/self/fd")) <= before
        pid = forkserver._forkserver._forkserver_pid
        os.kill(pid, signal.SIGSTOP)
        while process_state(pid) != "T":
            time.sleep(0.01)
        assert server.fork(tmp_path, {}) is None
        assert not server.is_alive
