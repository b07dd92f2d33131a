"""The command that trains one run, given what is no run."""

import subprocess
import sys

import pytest

from suite.base.exit_codes import Exit
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.store.run_directory import RunDirectory

EXPERIMENT = Experiment(model="deit_micro", dataset="cifar10", image_size=32, recipe=DEIT_LAPTOP)


def execute(*arguments):
    return subprocess.run([sys.executable, "-m", "suite.execute", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("content", [None, "{", '{"model": "deit_micro"}'])
def test_a_folder_without_an_experiment_is_misuse_and_stays_as_it_is(tmp_path, content):
    run = RunDirectory.of(tmp_path, EXPERIMENT)
    if content is not None:
        run.create(EXPERIMENT)
        run.experiment_path.write_text(content)
    before = sorted(tmp_path.rglob("*"))
    done = execute(run.path)
    assert done.returncode == Exit.MISUSE
    assert f"cannot read {run.experiment_path}" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_resources_that_cannot_be_are_misuse(tmp_path):
    done = execute(tmp_path, "--resources", '{"num_ranks": 0}')
    assert (done.returncode, "Traceback" in done.stderr) == (Exit.MISUSE, False)


def test_its_help_says_that_a_run_started_by_hand_is_not_watched():
    assert "is not watched" in " ".join(execute("--help").stdout.split())
