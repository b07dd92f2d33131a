"""``--track`` fills a tracker, as TensorBoard's own reader finds, and no tracker touches a run."""

import contextlib
import functools
import importlib.util
import os
import signal
import time

import pytest

from launchers.grid import main
from launchers.slurm import job as node
from launchers.slurm.submission_record import Submission, write_submission
from launchers.tracking import following as beside
from launchers.tracking.follower import Following, FollowRequest, find_papers
from launchers.tracking.following import Follower, following
from suite.base.exit_codes import Exit
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

SMOKE = ["--suite", "sample_efficiency", "--profile", "smoke"]
FIRST = get_suite("sample_efficiency").profile("smoke").experiments()[0]  # DeiT on 5 %, 34.8 in ConViT's Table 2
needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None and os.environ.get("CI") != "true",
    reason="TensorBoard is not installed",
)


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.of(tmp_path, FIRST)
    run.create(FIRST)
    return run


def log(run, *steps, loss=1.0):
    """A training's log: several lines of one step."""
    for step in steps:
        run.append_metrics({"step": step, "num_steps": 60, "epoch": step / 10, "loss": loss / step})
        run.append_metrics({"step": step, "num_steps": 60, "epoch": step / 10, "gates": [[0.5, 0.25], []]})


def request(store, tracker="tensorboard", runs=(FIRST.id,), timeout_s=600.0):
    words = {"suite": "sample_efficiency", "profile": "smoke", "timeout_s": timeout_s}
    return FollowRequest(tracker=tracker, store=str(store), runs=runs, **words)


def follow(store):
    """Pass on what there is, in this process."""
    found = Following(request(store), FIRST.id, find_papers("sample_efficiency", "smoke"), int)
    found.catch_up()
    found.close()


def read(store):
    """All scalars of the run, (step, value) by name, as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = store / "tracking" / "tensorboard" / FIRST.id
    found = EventAccumulator(str(folder))
    found.Reload()
    return {name: [(one.step, one.value) for one in found.Scalars(name)] for name in found.Tags()["scalars"]}


def wait_for(store, step):
    """Wait until the last thing of a step is tracked."""
    for _ in range(12000):
        with contextlib.suppress(Exception):  # not there yet, or being written
            if read(store)["gates/0/1"][-1][0] == step:
                return
        time.sleep(0.1)
    raise AssertionError(f"step {step} is not tracked")


@needs_tensorboard
def test_tensorboard_reads_back_the_metrics_and_the_result_beside_the_papers_number(tmp_path, run, finish):
    log(run, 1, 2, 4)
    finish(FIRST)
    follow(tmp_path)
    found = read(tmp_path)
    assert found["loss"] == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert found["gates/0/1"] == [(1, 0.25), (2, 0.25), (4, 0.25)]
    assert found["result/top1_percent"] == [(4, 50.0)]
    assert found["paper/top1_percent"] == [(4, pytest.approx(34.8))]


@needs_tensorboard
def test_many_lines_are_flushed_once(tmp_path, run, monkeypatch):
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    flushed, flush = [], EventFileWriter.flush
    monkeypatch.setattr(EventFileWriter, "flush", lambda writer: flushed.append(1) or flush(writer))
    log(run, *range(1, 50))
    following = Following(request(tmp_path), FIRST.id, {}, int)
    following.catch_up()
    assert len(read(tmp_path)["loss"]) == 49
    following.catch_up()
    assert len(flushed) == 2  # and as the writer begins
    following.close()


@needs_tensorboard
def test_no_step_is_there_twice_after_a_kill_of_tracker_and_run_and_a_resume_from_a_checkpoint(tmp_path, run, finish):
    log(run, 1, 2, 3, 4)
    killed = Follower(request(tmp_path))
    wait_for(tmp_path, 4)
    os.kill(killed.process.pid, signal.SIGKILL)
    assert "ended with status -9" in killed.finish(600)
    run.keep_metrics_until(2)
    log(run, 3, loss=6.0)
    living = Follower(request(tmp_path))
    wait_for(tmp_path, 3)
    run.keep_metrics_until(2)  # again, now under a follower that lives on
    log(run, 3, 5, loss=9.0)
    finish(FIRST)
    assert living.finish(600) == ""
    found = read(tmp_path)
    assert found["loss"] == [(1, 1.0), (2, 0.5), (3, 3.0), (5, pytest.approx(1.8))]
    assert [step for step, _ in found["gates/0/0"]] == [1, 2, 3, 5]
    assert [step for step, _ in found["result/top1_percent"]] == [5]


@needs_tensorboard
def test_what_is_tracked_to_its_end_is_not_tracked_again_until_its_result_changes(tmp_path, run, finish):
    folder = tmp_path / "tracking" / "tensorboard" / FIRST.id
    files = []
    for _ in range(3):
        if len(files) != 1:
            finish(FIRST, num_requeues=len(files))
        follow(tmp_path)
        files.append([path.name for path in folder.iterdir()])
    assert files[0] == files[1] != files[2]
    assert len(files[2]) == 1


@needs_tensorboard
def test_of_two_followers_of_a_run_one_has_it(tmp_path, run, finish):
    log(run, 1)
    first = Follower(request(tmp_path))
    wait_for(tmp_path, 1)
    folder = tmp_path / "tracking" / "tensorboard" / FIRST.id
    files = sorted(folder.iterdir())
    follow(tmp_path)
    assert sorted(folder.iterdir()) == files
    log(run, 2)
    finish(FIRST)
    assert first.finish(600) == ""
    assert [step for step, _ in read(tmp_path)["loss"]] == [1, 2]


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Put a package in the place of W&B's that does what is said as a run is opened."""

    def put(code):
        (tmp_path / "wandb.py").write_text(
            f"class Settings:\n def __init__(self, **o): pass\ndef init(**o):\n {code}\n"
        )
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    return put


@pytest.mark.parametrize(
    ("code", "timeout_s", "reason"),
    [("raise OSError('no space left for runs')", 300.0, "OSError: no space left for runs"),
     ("import time; time.sleep(10**6)", 0.5, "it has not answered for 0.5 s")],
)  # fmt: skip
def test_a_tracker_that_fails_or_hangs_is_told_of_once_and_dropped(
    tmp_path, run, broken, monkeypatch, code, timeout_s, reason
):
    broken(code)
    monkeypatch.setattr(beside, "_TIMEOUT_S", timeout_s)
    log(run, 1)
    said = []
    with following(["wandb"], tmp_path, "sample_efficiency", "smoke", [FIRST.id], said.append) as report:
        while not said:
            report()
            time.sleep(0.05)
        report()
    (failure,) = said
    assert failure.startswith(f"--track wandb was dropped: {reason}. The training is not touched")


def test_a_tracker_that_is_slow_with_a_long_backlog_is_not_taken_for_one_that_hangs(tmp_path, run, broken):
    slow = "SimpleNamespace(log=lambda values, step: time.sleep(0.1), finish=lambda: None)"
    broken(f"import time; from types import SimpleNamespace; return {slow}")
    log(run, *range(1, 56))
    assert Follower(request(tmp_path, "wandb", timeout_s=10.0)).finish(600) == ""  # for 110 lines of 0.1 s each


def test_a_tracker_that_cannot_even_begin_is_told_of_and_the_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "launchers.core.sidecar.tempfile.TemporaryFile",
        lambda *how, **more: (_ for _ in ()).throw(OSError("no space left")),
    )
    said = []
    with following(["tensorboard"], tmp_path, "sample_efficiency", "smoke", [FIRST.id], said.append):
        said.append("trained")
    failure, *rest = said
    assert failure.startswith("--track tensorboard was dropped: no space left. The training is not touched")
    assert rest == ["trained"]


@needs_tensorboard
def test_a_run_that_cannot_be_read_keeps_no_other_from_its_tracker(tmp_path, run):
    log(run, 1)
    other = RunDirectory.of(tmp_path, FIRST.with_seed(1))
    other.create(FIRST.with_seed(1))
    log(other, 1)
    other.path.joinpath("experiment.json").write_text("{}")
    follower = Follower(request(tmp_path, runs=(FIRST.with_seed(1).id, FIRST.id)))
    wait_for(tmp_path, 1)
    assert follower.finish(600) == ""


def test_a_tracker_that_hangs_at_the_end_is_waited_for_so_long_and_no_longer(tmp_path, run, broken):
    broken("import time; time.sleep(10**6)")
    log(run, 1)
    assert "it has not taken the last lines within 2 s" in Follower(request(tmp_path, "wandb")).finish(2)


@pytest.mark.skipif(importlib.util.find_spec("trackio") is not None, reason="trackio is installed")
def test_a_tracker_that_is_not_installed_is_said_with_the_command_before_anything_is_trained(tmp_path, capsys):
    assert main([*SMOKE, "--runs", str(tmp_path / "runs"), "--track", "trackio"]) == Exit.MISUSE
    said = capsys.readouterr().err.strip()
    assert "python -m pip install 'convolutional-prior-suite[trackio]'" in said
    assert "\n" not in said
    assert not (tmp_path / "runs").exists()


@needs_tensorboard
def test_the_same_grid_tracks_what_had_finished_before(tmp_path, run, finish, monkeypatch):
    monkeypatch.setattr("launchers.grid.build", lambda *place: None)
    monkeypatch.setattr("launchers.grid.following", functools.partial(following, last_s=600.0))
    finish(FIRST)
    only = ["--only", "model=deit_micro", "train_fraction=0.0375"]
    assert main([*SMOKE, *only, "--runs", str(tmp_path), "--track", "tensorboard"]) == 0
    assert read(tmp_path)["result/top1_percent"] == [(0, 50.0)]


def test_a_store_whose_name_is_no_text_is_followed(tmp_path):
    said = []
    with following(["tensorboard"], tmp_path / "r\udcfcns", "sample_efficiency", "smoke", [FIRST.id], said.append):
        pass
    assert said == []


@needs_tensorboard
def test_on_a_node_the_first_rank_alone_tracks_its_tasks_runs(tmp_path, run, finish, monkeypatch):
    submission = Submission(
        name="s-1", suite="sample_efficiency", profile="smoke", num_seeds=1, time_min=1,
        resources=Resources(track=("tensorboard",)), tasks=((FIRST,),),
    )  # fmt: skip
    write_submission(tmp_path, submission)
    monkeypatch.setattr(node, "_LAST_OF_FOLLOWERS_S", 300.0)
    monkeypatch.setattr(node, "import_training", lambda resources: None)
    monkeypatch.setattr(node._Rank, "train", lambda *_: finish(FIRST) and 0)
    for rank, is_tracked in (("1", False), ("0", True)):
        RunDirectory.of(tmp_path, FIRST).result_path.unlink(missing_ok=True)
        monkeypatch.setenv("SLURM_PROCID", rank)
        node.run_task(tmp_path, submission.name, 0)
        assert (tmp_path / "tracking").exists() == is_tracked
