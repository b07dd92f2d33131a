"""Edits while jobs wait change nothing of what they train. Scripts are run as by SLURM, which is made up."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.slurm.submission_record import Submission, read_submission, submissions_folder, write_submission
from suite.base.errors import RecordError
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
NUMBERS = {
    "SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0", "SLURM_PROCID": "0",
    "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "1",
    "SLURM_JOB_NODELIST": "localhost", "SLURMD_NODENAME": "localhost",
}  # fmt: skip


@pytest.fixture
def project(tmp_path):
    """A copy of the project, to be edited, and a SLURM that keeps the scripts it is given."""
    folder = tmp_path / "project"
    for name in ("suite", "launchers", "leaderboards", "datasets"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    tools = tmp_path / "bin"
    tools.mkdir()
    scripts = {
        "sbatch": f"[ $1 = --test-only ] || cp $2 $(mktemp {tmp_path}/script-XXXX); echo Submitted batch job 7",
        "srun": 'while [ "${1#-}" != "$1" ]; do [ "$1" = --output ] && shift; shift; done; exec "$@"',
        **dict.fromkeys(("squeue", "sacct", "sinfo", "scontrol"), "exit 0"),
    }
    for name, text in scripts.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    return folder


def submit_and_run(project, edit):
    """Submit a run from the project, edit that, then run the job in its folder; returns the run and what was said."""
    store = project.parent / "store"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    environment |= {"PATH": f"{project.parent}/bin:/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{project}:{project}/datasets"
    command = [
        sys.executable,
        "launchers/grid.py",
        "--suite",
        "sample_efficiency",
        "--profile",
        "smoke",
        "--runs",
        store,
    ]
    command += ["--only", "model=deit_micro", "train_fraction=0.0375", "--cluster", "slurm", "--detach"]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    edit()
    (script,) = (path for path in project.parent.glob("script-*") if "launchers.slurm.job" in path.read_text())
    done = subprocess.run(["bash", script], cwd=project, env=environment | NUMBERS, capture_output=True, text=True)
    (folder,) = store.glob("experiments/*/*")
    return RunDirectory(folder), done


def test_a_syntax_error_and_a_changed_default_after_submitting_change_nothing_of_what_is_trained(project):
    spec = project / "suite/spec/recipe.py"
    before = spec.read_text()
    smoothing = "label_smoothing: float = Field(0.0,"
    assert smoothing in before

    def edit():
        spec.write_text(before.replace(smoothing, "label_smoothing: float = Field(0.1,"))
        (project / "suite/execute.py").write_text("def run(:\n")

    run, done = submit_and_run(project, edit)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(run.result_path.read_text())["experiment"]["recipe"]["label_smoothing"]
    assert found == run.read_experiment().recipe.label_smoothing


def test_a_job_whose_code_makes_another_experiment_of_what_was_submitted_refuses_it(tmp_path, graph):
    submission = Submission(
        name="s-smoke-5f", suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
        tasks=((graph["first"],),), ids=(("deit_micro-0123456789abcdef/seed-0",),),
    )  # fmt: skip
    write_submission(tmp_path, submission)
    found = read_submission(submissions_folder(tmp_path) / "s-smoke-5f")
    assert found.task_of == {"deit_micro-0123456789abcdef/seed-0": 0}
    with pytest.raises(RecordError, match="a default has changed since"):
        found.experiments(0)


def test_a_submission_holds_every_field_also_those_at_their_defaults(tmp_path, graph):
    submission = Submission(
        name="s-smoke-5f", suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
        tasks=((graph["first"],),),
    )  # fmt: skip
    written = json.loads((write_submission(tmp_path, submission) / "submission.json").read_text())
    assert written["tasks"][0][0]["recipe"].keys() == type(graph["first"].recipe).model_fields.keys()
