"""A run names the code that trained it, and sets up its process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training.environment import describe

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 32, "warmup_epochs": 0.0})
EXPERIMENT = Experiment(model="deit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)
COMMITTING = """
import subprocess, sys
from pathlib import Path
from suite.execute import run
from suite.spec.resources import Resources
from suite.training.loop import Training

train_step = Training.train_step
def commit_in_the_third_step(self, step, batch):
    if step == 2:
        subprocess.run(sys.argv[2:], check=True)
    return train_step(self, step, batch)
Training.train_step = commit_in_the_third_step
assert run(Path(sys.argv[1]), Resources()) == 0
"""
TAKING_MEMORY = """
import resource, torch
from suite.training.environment import keep_freed_memory

keep_freed_memory()
for _ in range(8):  # the first ones find out where there is room
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(4_000_000) for _ in range(8)]  # 16 MB each
    del tensors
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_a_result_names_the_commit_that_its_run_started_with(tmp_path):
    project = tmp_path / "project"
    for folder in ("suite", "datasets"):
        shutil.copytree(
            Path(__file__).parents[2] / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    git = ["git", "-C", str(project), "-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    commit = [*git, "commit", "-q", "--allow-empty", "-m", "Change something"]
    for command in (["git", "init", "-q", str(project)], [*git, "add", "."], commit):
        subprocess.run(command, check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    run = RunDirectory.of(tmp_path, EXPERIMENT)
    run.create(EXPERIMENT)
    environment = {**os.environ, "PYTHONPATH": f"{project}:{project / 'datasets'}", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", COMMITTING, str(run.path), *commit], check=True, env=environment, cwd=tmp_path
    )
    assert subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() != head
    assert json.loads(run.environment_path.read_text())["commit"] == head
    assert run.read_result().commit == head


def test_a_run_names_all_other_kinds_of_machine_that_its_bits_are_of():
    at_first = describe(Resources(), num_ranks=1, num_attempts=1)
    again = describe(Resources(), num_ranks=1, num_attempts=2, before=at_first)
    assert at_first["also_on"] == again["also_on"] == []
    elsewhere = describe(Resources(), num_ranks=1, num_attempts=3, before=again | {"processor": "AVX2, 25, 1"})
    (other,) = elsewhere["also_on"]
    assert "(AVX2, 25, 1), torch" in other
    of_ranks = describe(Resources(), num_ranks=2, num_attempts=4, before=elsewhere)
    assert [each.rpartition(" ")[2] for each in of_ranks["also_on"]] == ["1", "1"]
    assert other in of_ranks["also_on"]
    unknown = "unknown (unknown), torch unknown, ranks: unknown"
    assert describe(Resources(), num_ranks=1, num_attempts=2, before={})["also_on"] == [unknown]


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="another C library")
def test_freed_tensors_leave_their_memory_to_the_next_ones():
    alone = [sys.executable, "-c", TAKING_MEMORY]  # what other tests left would decide where tensors lie
    taken_anew = int(subprocess.run(alone, check=True, capture_output=True, text=True).stdout)
    assert taken_anew < 15_000  # pages; of 31,000 that were written to
