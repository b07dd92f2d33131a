"""The examples, used as their users would: copied into an empty folder, outside of the checkout."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suite.export.folder import load_folder

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 40
OWN_IMAGES = ["--dataset", "shapes", "--data-dir", "data", "--loader", "folder"]


@pytest.fixture
def call(tmp_path):
    for path in EXAMPLES:
        shutil.copy(path, tmp_path)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "datasets")])

    def call(*words):
        command = [sys.executable, *words]
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def test_examples_are_short():
    assert len(EXAMPLES) == 3
    assert [path.name for path in EXAMPLES if len(path.read_text().splitlines()) >= LONGEST] == []


def test_a_model_a_suite_and_images_of_one_s_own_become_a_board_and_a_folder(call, tmp_path, monkeypatch):
    command = ("-m", "launchers.commands")
    call("my_images.py", "shapes")
    call(*command, "prepare", "--dataset", "shapes", "--source", "shapes", "--format", "folder", "--out", "data")
    custom_model = ("--challenger", "mine=my_vit.py:MyViT", "dim=32", "depth=1")
    few = ("--only", "model=mine", "train_fraction=0.1")
    said = call(*command, "grid", "--suite", "my_suite.py:SUITE", *custom_model, *few, *OWN_IMAGES)
    assert "all of it on shapes" in said
    (tmp_path / "my_vit.py").unlink()  # whoever reads the store later needs no file beside it
    again = ("build", "--suite", "my_suite.py:SUITE", "--dataset", "shapes")
    call(*command, *again)
    with (tmp_path / "runs/leaderboards/my_suite/laptop@shapes.long.csv").open() as file:
        (line,) = [line for line in csv.DictReader(file) if line["column"] == "mine_top1" and line["mean"]]
    assert (line["row"], line["n"], line["status"], line["paper"]) == ("10 %", "1", "done", "")
    (run,) = tmp_path.glob("runs/experiments/custom-MyViT-*/seed-0")
    monkeypatch.setenv("IMAGESETS_DIR", str(tmp_path / "data"))
    call(*command, "export", str(run), "--to", "out")
    assert load_folder(tmp_path / "out", trust_code=True).head.out_features == 2
