"""Strangers' models, trained again in a sandbox: an entry, an altered copy of it, and programs that do harm."""

import json
import re
import tarfile
import tempfile
from pathlib import Path

import pytest

from launchers.grid import main as grid
from leaderboards.auditing.retraining import Retraining
from leaderboards.auditing.sandbox import Limits, check_sandbox
from leaderboards.boards.board import make_leaderboard
from leaderboards.entries import with_entries
from leaderboards.submit import main as submit
from leaderboards.text.markdown import render_markdown
from leaderboards.verify import main
from suite.base.errors import RunError
from suite.papers import get_suite
from suite.spec.custom_model import ModelSource, hash_source
from suite.store.predictions import Predictions, read_predictions, write_predictions
from suite.store.run_directory import RunDirectory
from suite.store.run_store import list_runs
from tests.leaderboards.auditing.conftest import alter, pack_folder, write_right

TINY = """
from torch import nn

class Tiny(nn.Sequential):
    def __init__(self, *, num_classes, image_size):
        super().__init__(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, num_classes))
"""
HARMFUL = """
import os, sys

def harmful(*, num_classes, image_size, harm):
    print("\\x1b[2Jcleared")
    if harm == "link":
        os.symlink("/etc/hostname", sys.argv[1] + "/weights.safetensors")
    if harm == "nest":
        os.chdir(sys.argv[1])
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    raise RuntimeError("\\x1b]0;title\\x07 " + harm + " " + os.environ.get("SECRET", "nothing"))
"""
SMOKE = ["--suite", "sample_efficiency", "--profile", "smoke"]


@pytest.fixture(autouse=True)
def sandbox():
    try:
        check_sandbox()
    except RunError as error:
        pytest.skip(str(error))


def raise_accuracy(run):
    """Alter a run as who knows how can: its predictions, log and result, each with its digest."""
    found = read_predictions(run)
    right = found.predicted.copy()
    wrong = (~found.is_right).nonzero()[0][:5]
    right[wrong] = found.labels[wrong]
    after = Predictions(right, found.labels)
    top1 = 100 * after.is_right.mean()
    lines = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    for line in lines:
        line.update({"top1_percent": top1, "top5_percent": 100.0} if "top1_percent" in line else {})
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    digest = write_predictions(run, after)
    alter(run.result_path, top1_percent=top1, best_top1_percent=top1, top5_percent=100.0, predictions_sha256=digest)


def test_an_entry_is_trained_again_to_the_same_bits_and_an_altered_run_of_it_is_found(tmp_path, capsys):
    (tmp_path / "tiny.py").write_text(TINY)
    store, entries = tmp_path / "runs", tmp_path / "entries"
    entered = [
        "--challenger",
        f"tiny={tmp_path / 'tiny.py'}:Tiny",
        "--only",
        "train_size_percent=5",
        "--only",
        "model=tiny",
    ]
    assert grid([*SMOKE, *entered, "--seeds", "2", "--runs", str(store)]) == 0
    assert submit([str(store), *SMOKE, "--name", "tiny", "--who", "A. Nother", "--out", str(entries)]) == 0
    board = with_entries(make_leaderboard(get_suite("sample_efficiency"), "smoke", store), entries)
    (line,) = [line for line in render_markdown(board).splitlines() if "A. Nother" in line]
    assert re.search(r"\| tiny +\| top-1 [\d.]+, mean of 1 \| +2 \| reported", line)
    capsys.readouterr()

    assert main([str(entries / "tiny"), "--sample", "2"]) == 2
    assert "programs of others, the models tiny: train them by --sandbox" in capsys.readouterr().err

    with tarfile.open(entries / "tiny/records.tar.xz") as archive:
        archive.extractall(tmp_path / "altered", filter="data")
    altered, fair = list_runs(tmp_path / "altered")
    raise_accuracy(altered)
    packed = pack_folder(tmp_path / "altered", tmp_path / "altered.tar.xz")
    assert main([str(packed), "--sample", "2", "--sandbox", "--report", str(tmp_path / "report.json")]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert not any(check["problems"] for check in report["checks"])
    assert {run["run"]: run["outcome"] for run in report["sample"]} == {altered.id: "differs", fair.id: "equal bits"}


@pytest.fixture
def harmful(finish_in, tmp_path):
    """Packed records of runs of a program that does harm, and their store."""
    source = ModelSource(kind="file", name="harmful", version=hash_source(HARMFUL.encode()), code=HARMFUL)
    first = get_suite("sample_efficiency").profile("smoke").experiments()[0]
    for harm in ("print", "link", "nest"):
        fields = {"model": "harmful", "model_source": source, "model_options": {"harm": harm}}
        experiment = first.model_copy(update=fields)
        run = RunDirectory.of(tmp_path / "store", experiment)
        run.create(experiment)
        found = {**write_right(run, 4000), "threads_per_rank": 1, "format_version": 8}
        finish_in(tmp_path / "store", experiment, found.pop("top1_percent"), **found)
        record = {"device": "cpu", "commit": "0" * 40, "packages": {"torch": "2.0"}}
        run.environment_path.write_text(json.dumps(record))
        run.append_metrics({"step": 1, "top1_percent": 40.0})
    return tmp_path / "store"


def test_a_program_that_prints_escapes_or_makes_links_or_nests_folders_is_not_trained_and_steers_no_terminal(
    harmful, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("SECRET", "of the user")
    packed = pack_folder(harmful, tmp_path / "harmful.tar.xz")
    before = set(Path(tempfile.gettempdir()).iterdir())
    assert main([str(packed), "--sample", "3", "--sandbox"]) == 1
    left = {path for path in set(Path(tempfile.gettempdir()).iterdir()) - before if (path / "runs").exists()}
    assert not left
    said = capsys.readouterr().out
    assert not re.search("[\x1b\x07]", said)
    assert r"\x1b]0;title\x07 print nothing" in said
    assert "it made links in its folder" in said
    assert said.count("not trained") == 3


def test_records_ask_for_no_more_processes_than_a_machine_has(harmful, tmp_path):
    run = next(iter(list_runs(harmful)))
    alter(run.result_path, num_ranks=100_000)
    found = Retraining(harmful, tmp_path / "again", tmp_path / "data", Limits(), is_sandboxed=True).recompute(run)
    assert found.outcome == "not trained"
    assert found.reason.startswith("it had 100000 ranks of 1 threads, more than 8 for each core")


def test_a_run_that_takes_too_long_is_ended(harmful, tmp_path):
    run = next(iter(list_runs(harmful)))
    limits = Limits(minutes=0.01)
    retraining = Retraining(harmful, tmp_path / "again", tmp_path / "data", limits, is_sandboxed=True)
    found = retraining.recompute(RunDirectory(run.path))
    assert (found.outcome, found.reason) == ("not trained", "it was ended after 0.01 minutes")
