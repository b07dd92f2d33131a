"""GitHub runs the same script as every other machine, by each Python that the project is for."""

import tomllib
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
JOB = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["tests"]


def test_the_workflow_calls_the_script_that_ci_calls_everywhere():
    (script,) = (step["run"] for step in JOB["steps"] if "run" in step)
    assert (ROOT / script).stat().st_mode & 0o111


def test_the_workflow_begins_with_the_oldest_python_that_the_project_allows():
    allowed = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    minors = [int(version.removeprefix("3.")) for version in JOB["strategy"]["matrix"]["python"]]
    assert minors == list(range(minors[0], minors[0] + 3))
    assert f"3.{minors[0]}" in allowed
    assert f"3.{minors[0] - 1}" not in allowed
