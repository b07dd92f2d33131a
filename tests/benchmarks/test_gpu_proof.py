"""The proof on a GPU keeps what is finished, and goes on with what is missing, after any end."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))  # scripts find each other there

from gpu import work_through  # noqa: E402

TESTS = """
import os, pytest
pytestmark = pytest.mark.gpu
def note(name):
    open("notes.txt", "a").write(name)
def test_first():
    note("a")
def test_second():
    note("b")
    assert "FAILS" not in os.environ
def test_third():
    note("c")
    "KILLED" in os.environ and os.kill(os.getpid(), 9)
"""


@pytest.fixture
def prove(tmp_path):
    """Runs three tests as ``make gpu-proof`` does; returns how they ended and which of them ran so far."""
    shutil.copy(ROOT / "tests/gpu/conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")

    def prove(**variables):
        environment = {**os.environ, "GPU_PROOF": "proof/tests.jsonl", **variables}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, env=environment
        )
        lines = (tmp_path / "proof/tests.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return done.returncode, [each["outcome"] for each in found], (tmp_path / "notes.txt").read_text()

    return prove


def test_a_proof_that_is_killed_goes_on_with_the_tests_that_have_not_passed(prove):
    assert prove(FAILS="1", KILLED="1") == (-9, ["passed", "failed"], "abc")
    assert prove() == (0, ["passed", "failed", "passed", "passed"], "abcbc")
    assert prove() == (0, ["passed", "failed", "passed", "passed"], "abcbc")


def test_a_part_that_fails_stops_no_other_and_is_measured_again_at_the_next_start(tmp_path):
    def fail():
        raise ValueError("no such card")

    path = tmp_path / "speed.json"
    assert work_through({"first": fail, "second": lambda: {"rate": 1}}, path) == ["first"]
    assert json.loads(path.read_text())["first"]["failed"] == ["ValueError: no such card"]
    assert work_through({"first": lambda: {"rate": 2}, "second": fail}, path) == []
    assert json.loads(path.read_text()) == {"first": {"rate": 2}, "second": {"rate": 1}}


def test_what_was_measured_is_kept_when_a_later_part_ends_the_process_and_measured_again_where_it_is_named(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    path = tmp_path / "speed.json"
    with pytest.raises(KeyboardInterrupt):
        work_through({"first": lambda: {"rate": 1}, "second": interrupt}, path)
    assert json.loads(path.read_text()) == {"first": {"rate": 1}}
    work_through({"first": lambda: {"rate": 3}}, path, again=["first"])
    assert json.loads(path.read_text()) == {"first": {"rate": 3}}
