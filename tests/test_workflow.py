"""GitHub runs the same script as every other machine, and no workflow has a right or a secret that it does not need."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
WORKFLOWS = {path.stem: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
JOB = yaml.safe_load(WORKFLOWS["tests"])["jobs"]["tests"]


def test_the_workflow_calls_the_script_that_ci_calls_everywhere():
    (script,) = (step["run"] for step in JOB["steps"] if "run" in step)
    assert (ROOT / script).stat().st_mode & 0o111


def test_the_workflow_begins_with_the_oldest_python_that_the_project_allows():
    allowed = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    minors = [int(version.removeprefix("3.")) for version in JOB["strategy"]["matrix"]["python"]]
    assert minors == list(range(minors[0], minors[0] + 3))
    assert f"3.{minors[0]}" in allowed
    assert f"3.{minors[0] - 1}" not in allowed


def test_every_action_is_pinned_by_its_commit_with_its_version_beside():
    used = [line for text in WORKFLOWS.values() for line in re.findall(r"uses: (.*)", text)]
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_no_workflow_has_a_secret_and_only_what_publishes_may_do_more_than_read():
    assert [name for name, text in WORKFLOWS.items() if "secrets" in text or "pull_request_target" in text] == []
    for name, text in WORKFLOWS.items():
        found = yaml.safe_load(text)
        assert found["permissions"] == {"contents": "read"}
        more = {job for job, of in found["jobs"].items() if "permissions" in of}
        assert more == ({"publish"} if name in ("site", "release") else set())
        assert all(
            of["timeout-minutes"] and (job not in more or of["environment"]) for job, of in found["jobs"].items()
        )
