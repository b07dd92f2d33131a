"""The examples for other schedulers: their files are read, and their scripts run with a stand-in for Python."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from launchers.command.command_line import parse_options

FOLDER = Path(__file__).parents[2] / "examples/clusters"
STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$@" >>called\n'


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose environment has a Python that only notes what it is called with."""
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(STAND_IN)
    (programs / "python").chmod(0o755)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_grid(words):
    program, *options = words
    assert program == "launchers/grid.py"
    given = parse_options(options)
    assert (given.suite, given.profile, given.cluster) == ("sample_efficiency", "gpu", "local")
    assert given.data_dir is not None
    return given


def run(script, cwd, **variables):
    subprocess.run(["bash", "-euc", script], cwd=cwd, check=True, timeout=60, env={**os.environ, **variables})


@pytest.mark.parametrize(
    ("name", "variable", "expected"),
    [
        ("pbs", "PBS_O_WORKDIR", {"-J": "0-2", "-r": "y", "-N": "grid", "-j": "oe"}),
        ("lsf", "LS_SUBCWD", {"-J": '"grid[1-3]"', "-n": "16", "-Q": "130", "-wa": "TERM", "-wt": "3", "-W": "24:00"}),
    ],
)
def test_a_scheduler_s_script_starts_a_grid_in_the_folder_of_its_submission(checkout, name, variable, expected):
    text = (FOLDER / f"{name}.sh").read_text()
    options = dict(re.findall(rf"^#{'PBS' if name == 'pbs' else 'BSUB'} (-\w+) ?(.*)$", text, re.MULTILINE))
    assert options.items() >= expected.items()
    subprocess.run(["bash", "-n", FOLDER / f"{name}.sh"], check=True)
    run(text, "/", **{variable: str(checkout)})
    check_grid((checkout / "called").read_text().splitlines())


def test_the_job_of_kubernetes_is_indexed_and_begins_a_pod_anew_unless_its_grid_has_failed():
    job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert spec["completions"] == spec["parallelism"] == 3
    assert pod["restartPolicy"] == "Never"  # as Kubernetes expects with backoffLimitPerIndex and podFailurePolicy
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Ignore", "FailIndex"]
    (container,) = pod["containers"]
    python, *words = container["command"]
    assert python == "python"
    (mount,) = container["volumeMounts"]
    assert check_grid(words).runs.is_relative_to(mount["mountPath"])
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]


def test_the_task_of_skypilot_keeps_its_store_in_a_volume(checkout):
    task = yaml.safe_load((FOLDER / "skypilot.yaml").read_text())
    assert task["num_nodes"] == 3
    (place,) = task["volumes"]
    run(task["run"], checkout)
    assert check_grid((checkout / "called").read_text().splitlines()).runs.is_relative_to(place)


def test_the_manual_names_each_example():
    page = (FOLDER.parents[1] / "docs/cluster.md").read_text()
    assert {path.name for path in FOLDER.iterdir()} == set(re.findall(r"examples/clusters/([\w.]+)\)", page))
