"""In which order the pool starts runs that need others. Processes are made up; ``tests/integration`` has real ones."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from launchers import grid
from launchers.core.plan import make_plan
from launchers.local.display import Display
from launchers.local.pool import Gpus, LocalPool, LocalRun, environment_of_runs
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources
from suite.store.attempts import record_fallback, record_start
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory


class Process:
    """One that runs until ``code`` is set."""

    code = None

    def poll(self):
        return self.code


@pytest.fixture
def pool(tmp_path, monkeypatch, graph, finish):
    """A pool over the graph, with names for its runs."""
    monkeypatch.setattr(LocalRun, "_spawn", lambda run, slot, gpus, server: setattr(run, "process", Process()))

    class Pool:
        def __init__(self, names=tuple(graph), max_parallel=2):
            plan = make_plan([graph[name] for name in names], tmp_path, Resources())
            self.pool = LocalPool(plan, max_parallel)
            self.runs = dict(zip(names, self.pool.runs, strict=True))

        def poll(self):
            return self.pool.poll()

        def end(self, name, code=0, reason=""):
            """The run's process ends: well, or for a reason."""
            if reason:
                failure = Failure(kind="error", reason=reason, log_path="log.txt")
                RunDirectory.of(tmp_path, graph[name]).write_failure(failure)
            elif code == 0:
                finish(graph[name])
            self.runs[name].process.code = code
            return self.poll()

        def state(self, name):
            return self.runs[name].state

        def running(self):
            return [name for name, run in self.runs.items() if run.state == "running"]

    return Pool


def test_runs_that_wait_for_others_take_up_no_slot(pool):
    grid = pool()
    grid.poll()
    assert grid.running() == ["first", "second"]
    assert grid.runs["tuned"].waits_for_parent
    grid.end("first")
    assert grid.running() == ["second", "tuned"]
    grid.end("second")
    assert grid.running() == ["tuned", "mask_second"]
    grid.end("tuned")
    grid.end("mask_second")
    assert grid.running() == ["mask_tuned"]
    assert not grid.end("mask_tuned")


def test_what_the_most_others_wait_for_starts_first(pool):
    grid = pool(["second", "mask_second", "first", "tuned", "mask_tuned"], max_parallel=1)
    order = []
    while grid.poll():
        (name,) = grid.running()
        order.append(name)
        grid.end(name)
    assert order == ["first", "second", "tuned", "mask_second", "mask_tuned"]


def test_after_a_failure_what_needs_it_fails_at_once_and_leaves_nothing(pool, tmp_path, graph):
    grid = pool()
    grid.poll()
    grid.end("first", code=1, reason="the loss is nan")
    assert grid.runs["tuned"].problem == f"needs {graph['first'].id}, which failed"
    assert grid.runs["mask_tuned"].problem == f"needs {graph['tuned'].id}, which failed"
    assert not RunDirectory.of(tmp_path, graph["tuned"]).path.exists()
    grid.end("second")
    assert not grid.end("mask_second")  # nothing is left to wait for
    assert grid.state("mask_second") == "done"


def test_a_parent_that_was_killed_is_tried_again_before_others_give_up(pool):
    grid = pool()
    grid.poll()
    for _ in range(2):
        grid.end("first", code=-9)
        assert (grid.state("first"), grid.state("tuned")) == ("running", "waiting")
    grid.end("first", code=-9)
    assert (grid.state("first"), grid.state("tuned")) == ("failed", "failed")


def test_a_parent_that_another_grid_trains_is_waited_for(pool, tmp_path, graph, finish):
    first = RunDirectory.of(tmp_path, graph["first"])
    first.create(graph["first"])
    with first.claim():
        grid = pool()
        assert grid.poll()
        assert (grid.state("first"), grid.state("tuned")) == ("locked", "waiting")
        finish(graph["first"])
    grid.pool._looked_at = float("-inf")
    grid.poll()
    assert (grid.state("first"), grid.state("tuned")) == ("done", "running")


def test_a_run_whose_parent_s_result_was_taken_away_fails_and_leaves_nothing(pool, tmp_path, graph, finish):
    finish(graph["first"])
    grid = pool()
    grid.poll()
    grid.end("tuned", code=77)
    assert "no result any more" in grid.runs["tuned"].problem
    assert not RunDirectory.of(tmp_path, graph["tuned"]).failure_path.exists()


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
def test_runs_share_gpus_but_no_run_is_given_one_twice(tmp_path, monkeypatch, graph, num_ranks):
    given = []
    monkeypatch.setattr(
        subprocess, "Popen", lambda *_, env, **options: given.append(env["CUDA_VISIBLE_DEVICES"].split(","))
    )
    (planned,) = make_plan([graph["first"]], tmp_path, Resources(num_ranks=num_ranks))
    for slot in range(6):
        assert LocalRun(planned).start(slot, Gpus(["0", "1", "GPU-2"]))
    assert all(len(set(gpus)) == num_ranks for gpus in given)
    assert {gpu for gpus in given for gpu in gpus} == {"0", "1", "GPU-2"}


def test_a_run_of_more_ranks_than_gpus_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grid, "_visible_gpus", lambda: ["0", "1"])
    monkeypatch.setattr(grid, "LocalPool", lambda *_: pytest.fail("training started"))
    options = ["--suite", "sample_efficiency", "--profile", "gpu", "--runs", str(tmp_path), "--ranks-per-node", "4"]
    assert grid.main(options) == Exit.FAILED
    assert "torch sees 2 of the 4 GPUs that a run's ranks need" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("named", "num_seen", "expected"),
    [(None, 2, ["0", "1"]), ("3,5", 2, ["3", "5"]), ("0,1,0,1", 0, []), ("-1", 0, [])],
)
def test_only_gpus_that_torch_sees_are_handed_out(monkeypatch, named, num_seen, expected):
    monkeypatch.setattr("torch.cuda.device_count", lambda: num_seen)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert grid._visible_gpus() == expected


@pytest.mark.parametrize(("by_user", "expected"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_of_a_run_sleep_while_they_wait_unless_the_user_says_otherwise(monkeypatch, by_user, expected):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    for name, value in by_user.items():
        monkeypatch.setenv(name, value)
    assert environment_of_runs(Resources())["OMP_WAIT_POLICY"] == expected


@pytest.mark.parametrize(
    "start",
    [
        "from launchers.core.preload import import_training; import_training(Resources())",  # as a node
        "import suite.execute; sys.argv = ['execute', folder]; suite.execute.main()",  # by hand
    ],
)
def test_openmp_itself_hears_of_it_however_a_run_starts(graph, tmp_path, start):
    run = RunDirectory.of(tmp_path, graph["first"])
    run.create(graph["first"])
    run.result_path.mkdir()  # so that there is nothing to train
    code = f"import sys; from suite.spec.resources import Resources; folder = {str(run.path)!r}; {start}; import torch"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment["OMP_DISPLAY_ENV"] = "VERBOSE"
    started = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "GOMP_SPINCOUNT = '0'" in started.stderr


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_checkpoint_that_was_passed_over_is_told_on_the_console(pool, tmp_path, graph, is_terminal):
    made, console = pool(("first",)), Console(file=io.StringIO(), force_terminal=is_terminal, width=160)
    run = RunDirectory.of(tmp_path, graph["first"])
    with Display(made.pool, console) as display:
        made.poll()
        record_start(run, num_ranks=1)
        record_fallback(run, from_step=40, num_unusable=1)
        made.end("first")
        display.update()
    assert "1 checkpoint could not be gone on from: it went on from step 40" in console.file.getvalue()


def test_a_run_with_a_damaged_rate_is_shown_with_the_others(pool, tmp_path, graph):
    made, console = pool(("first",)), Console(file=io.StringIO(), force_terminal=True, width=160)
    with Display(made.pool, console) as display:
        made.poll()
        for rate in (0, -5.0, 1e-320):
            line = {"step": 1, "num_steps": 10**15, "images_per_s": rate}
            RunDirectory.of(tmp_path, graph["first"]).append_metrics(line)
            display.update()
    assert "1 running" in console.file.getvalue()
