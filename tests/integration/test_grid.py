"""The whole path from the command line to the leaderboard, on packaged real images (profile smoke)."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imagesets.prepare.__main__ import main as prepare
from launchers.grid import main
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status

ROOT = Path(__file__).parents[2]
UNBUFFERED = {**os.environ, "PYTHONUNBUFFERED": "1"}
FEW = ["--only", "train_fraction=0.0375"]  # two of the ten runs


def grid_command(store, *options):
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", "sample_efficiency", "--profile", "smoke"]
    return [*command, "--runs", str(store), *options]


def run_grid(store, *options):
    return subprocess.run(grid_command(store, *options), capture_output=True, text=True, timeout=300)


def call_grid(store, *options):
    """The exit status of the same command in this process, where no run is started."""
    try:
        return main(grid_command(store, *options)[2:])
    except SystemExit as ended:
        return ended.code


def leaderboard(store, name="smoke.convit_table2.csv"):
    return (store / "leaderboards/sample_efficiency" / name).read_bytes()


def first_run(store, model):
    """The run directory of the smallest fraction, whether it is there or not."""
    experiments = get_suite("sample_efficiency").profile("smoke").experiments()
    return RunDirectory.of(store, next(e for e in experiments if e.model == model))


def process_of(run, rank="0"):
    """The pid of a run's process, once it trains; of one rank, where there are several."""
    while not run.metrics_path.exists() or run.metrics_path.stat().st_size == 0:
        time.sleep(0.01)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = ((folder / name).read_bytes().decode() for name in ("cmdline", "environ"))
        except OSError:
            continue
        mine = "\0RANK=" not in environment if rank is None else f"\0RANK={rank}\0" in environment
        if str(run.path) in command and mine:
            return int(folder.name)
    raise AssertionError(f"no process trains {run.path}")


def attempts(store):
    return [json.loads(path.read_text())["num_attempts"] for path in store.glob("experiments/*/*/environment.json")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A store with two finished runs, and what the grid printed."""
    store = tmp_path_factory.mktemp("undisturbed")
    return store, run_grid(store, *FEW)


def test_a_grid_trains_what_is_asked_and_builds_the_leaderboard(undisturbed):
    store, done = undisturbed
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 runs: 2 new" in done.stdout
    assert len(list(store.glob("experiments/*/seed-0/result.json"))) == 2
    rows = [line.split(",") for line in leaderboard(store).decode().splitlines()]
    assert rows[0][0] == "train_size_percent"
    assert [row[0] for row in rows[1:]] == ["5", "10", "30", "50", "100"]
    assert all(rows[1][1:])
    assert not any(rows[2][1:])  # not trained: empty, never invented


def test_a_finished_run_is_never_trained_again(undisturbed, capsys):
    store, _ = undisturbed
    before = leaderboard(store)
    assert call_grid(store, *FEW) == 0
    assert "2 finished" in capsys.readouterr().out
    assert attempts(store) == [1] * 2
    assert leaderboard(store) == before


def test_a_grid_killed_three_times_at_random_ends_with_the_same_bytes(undisturbed, tmp_path):
    rng = random.Random(1)
    for _ in range(3):
        process = subprocess.Popen(grid_command(tmp_path, *FEW), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 7))
        process.send_signal(signal.SIGKILL)
        process.wait()
    last = run_grid(tmp_path, *FEW)
    assert last.returncode == 0, last.stdout + last.stderr
    assert leaderboard(tmp_path) == leaderboard(undisturbed[0])


def test_one_failed_run_stops_no_other_and_its_cell_says_why(tmp_path):
    obstacle = first_run(tmp_path, "deit_micro").metrics_path
    obstacle.mkdir(parents=True)  # nothing can be logged there
    done = run_grid(tmp_path, *FEW)
    assert done.returncode == 1
    assert "1 failed; --retry-failed" in done.stdout
    assert "metrics.jsonl" in done.stdout
    assert first_run(tmp_path, "convit_micro").result_path.exists()
    assert "metrics.jsonl" in leaderboard(tmp_path, "smoke.md").decode()
    obstacle.rmdir()
    assert call_grid(tmp_path, *FEW) == 1  # a failure waits for a word from the user
    assert run_grid(tmp_path, *FEW, "--retry-failed").returncode == 0


def test_a_corrupt_result_is_named_and_trained_again_on_request(undisturbed, tmp_path, capsys):
    shutil.copytree(undisturbed[0] / "experiments", tmp_path / "experiments")
    broken = first_run(tmp_path, "convit_micro").result_path
    broken.write_text(broken.read_text()[:100])
    assert call_grid(tmp_path, *FEW) == 1
    assert str(broken) in capsys.readouterr().out
    assert run_grid(tmp_path, *FEW, "--retry-failed").returncode == 0
    assert leaderboard(tmp_path) == leaderboard(undisturbed[0])


def test_a_killed_run_is_resumed_by_the_same_grid_from_its_checkpoint(undisturbed, tmp_path):
    grid = subprocess.Popen(grid_command(tmp_path, *FEW), stdout=subprocess.PIPE, text=True)
    run = first_run(tmp_path, "convit_micro")
    victim = process_of(run, rank=None)
    while not list(run.checkpoint_path.glob("step-*")):
        time.sleep(0.005)
    os.kill(victim, signal.SIGKILL)
    output = grid.communicate(timeout=300)[0]
    assert grid.returncode == 0, output
    assert re.search(r"restarted .*convit_micro.*killed by SIGKILL", output)
    assert re.search(r"training steps [1-9]\d* to", run.log_path.read_text())
    assert leaderboard(tmp_path) == leaderboard(undisturbed[0])


def test_a_killed_rank_ends_the_others_and_the_grid_resumes_the_run(tmp_path):
    options = ("--ranks-per-node", "2", "--only", "model=convit_micro", "train_fraction=0.0375")
    grid = subprocess.Popen(grid_command(tmp_path, *options), stdout=subprocess.PIPE, text=True)
    os.kill(process_of(first_run(tmp_path, "convit_micro"), rank="1"), signal.SIGKILL)
    output = grid.communicate(timeout=300)[0]
    assert grid.returncode == 0, output
    assert "rank 1 was killed by SIGKILL" in output


def test_ctrl_c_lets_runs_write_their_checkpoints(tmp_path):
    options = ("--only", "model=deit_micro", "train_fraction=0.0375")
    grid = subprocess.Popen(
        grid_command(tmp_path, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=UNBUFFERED,
    )  # fmt: skip
    run = first_run(tmp_path, "deit_micro")
    process = process_of(run, rank=None)
    os.kill(process, signal.SIGSTOP)  # else it may be done before it is told to stop
    grid.send_signal(signal.SIGINT)
    assert any("every run writes its checkpoint" in line for line in grid.stdout)
    os.kill(process, signal.SIGCONT)
    output = grid.communicate(timeout=300)[0]
    assert grid.returncode == 130
    assert "the same command goes on from here" in output
    assert read_run_status(run, {}).state == "interrupted"
    assert list(run.checkpoint_path.glob("step-*"))
    assert not run.failure_path.exists()


def test_a_masked_evaluation_waits_for_the_run_that_it_masks_and_takes_one_that_another_suite_has_trained(
    tmp_path, capsys
):
    masking = [*grid_command(tmp_path), "--suite", "convit_masking", "--only", "model=deit_micro"]
    first = subprocess.run([*masking, "kind=masking"], capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stdout
    assert "2 runs: 2 new" in first.stdout  # also the one that is masked
    rows = (tmp_path / "leaderboards/convit_masking/smoke.convit_table5.csv").read_text().splitlines()
    assert all(float(cell) > 0 for cell in rows[1].split(",")[1:])
    assert call_grid(tmp_path, "--suite", "convit_imagenet", "--dry-run") == 0
    assert "1 finished" in capsys.readouterr().out


@pytest.mark.parametrize("loader", ["folder", "webdataset", "ffcv"])
def test_any_loader_gives_the_weights_of_memory(start, undisturbed, tmp_path, loader):
    assert prepare(["--dataset", "cifar10_sample", "--format", loader, "--out", str(tmp_path)]) == 0
    found, expected = (first_run(store, "deit_micro") for store in (tmp_path / "runs", undisturbed[0]))
    found.create(expected.read_experiment())
    (process,) = start(found, Resources(loader=loader, data_dir=str(tmp_path)))
    process.join()
    assert process.exitcode == 0, found.log_path.read_text()
    assert found.read_result().loader == loader
    assert found.weights_path.read_bytes() == expected.weights_path.read_bytes()


def test_another_precision_is_another_leaderboard(start, tmp_path, capsys):
    in_bf16 = get_suite("sample_efficiency").profile("smoke").with_precision("bf16").experiments()
    experiment = next(one for one in in_bf16 if one.model == "deit_micro")
    run = RunDirectory.of(tmp_path, experiment)
    run.create(experiment)
    (process,) = start(run, Resources())
    process.join()
    options = ("--precision", "bf16", "--only", "model=deit_micro", "train_fraction=0.0375")
    assert call_grid(tmp_path, *options) == 0, run.log_path.read_text()
    assert "1 finished" in capsys.readouterr().out
    assert leaderboard(tmp_path, "smoke-bf16.convit_table2.csv").decode().splitlines()[1].startswith("5,")
    assert leaderboard(tmp_path, "smoke-bf16.convit_table2.csv").decode().splitlines()[1].split(",")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--suite", "sample_eficiency"], "Did you mean 'sample_efficiency'"),
        (["--profile", "labtop"], "Did you mean 'laptop'"),
        (["--only", "modl=deit_micro"], "Did you mean 'model'"),
        (["--only", "model=deit_mikro"], "Did you mean 'deit_micro'"),
        (["--only", "model"], "expected KEY=VALUE"),
        (["--seeds", "0"], "expected a whole number of at least 1"),
        (["--ranks-per-node", "3"], "a batch of 32 cannot be shared by 3 ranks"),
        (["--micro-batch", "5"], "micro-batches of 5 do not divide"),
        (["--runs", "/dev/null"], "expected a folder"),
    ],
)
def test_misuse_exits_2_with_the_valid_choices(tmp_path, capsys, options, message):
    assert call_grid(tmp_path, *options) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_plan_warns_of_models_whose_numbers_hang_on_the_micro_batch(tmp_path, capsys):
    custom_model = ("--challenger", "mine=timm:resnet26t")
    call_grid(tmp_path, *custom_model, "--micro-batch", "16", "--dry-run")
    assert "mine: batch norms, where there are any, will see fewer images" in " ".join(capsys.readouterr().out.split())
    call_grid(tmp_path, *custom_model, "--dry-run")
    assert "batch norms" not in capsys.readouterr().out


def test_a_dry_run_prints_the_cost_and_starts_nothing(tmp_path, capsys):
    assert call_grid(tmp_path, "--profile", "paper", "--dry-run") == 0
    assert "GPU-hours" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
