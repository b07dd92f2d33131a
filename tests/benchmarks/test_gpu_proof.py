"""The proof's stages: each once, in their order, within the time, and on with what is missing after any end."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))  # scripts find each other there

from gpu_proof import Proof, work_through  # noqa: E402
from gpu_stages import STAGES, Stage  # noqa: E402


def stage(name, code, minutes=1.0, **others):
    """A stage that runs Python code, once for a GPU and once as a rehearsal."""
    command = (sys.executable, "-c", code)
    return Stage(name, "something", minutes, command, command, **others)


def note(text, then=""):
    """Code that adds a line to the stage's folder."""
    return f"open(r'{{out}}/notes.txt', 'a').write('{text}\\n'); {then}"


def notes(work, name):
    path = work / name / "notes.txt"
    return path.read_text().split() if path.exists() else []


def states(proof):
    return [proof.outcome(stage).state for stage in proof.stages]


def prove(work, stages, minutes=10.0):
    proof = Proof(work, "cpu", stages)
    return work_through(proof, minutes, work / "bundle.gz"), proof


def test_a_stage_that_fails_stops_no_other_and_is_tried_again_at_the_next_start(tmp_path):
    stages = [stage("first", note("a", "raise SystemExit(3)")), stage("second", note("b"))]
    well, proof = prove(tmp_path, stages)
    assert (well, states(proof)) == (False, ["failed", "done"])
    assert "exit status 3" in proof.outcome(stages[0]).reason
    well, proof = prove(tmp_path, [stage("first", note("a")), stages[1]])
    assert (well, states(proof)) == (True, ["done", "done"])
    assert (notes(tmp_path, "first"), notes(tmp_path, "second")) == (["a", "a"], ["b"])


def test_what_does_not_fit_into_the_time_is_not_started_and_what_fits_is(tmp_path):
    stages = [stage("long", note("a"), minutes=8), stage("short", note("b"), minutes=0.1)]
    _, proof = prove(tmp_path, stages, minutes=5)
    assert states(proof) == ["missing", "done"]
    assert states(prove(tmp_path, stages, minutes=30)[1]) == ["done", "done"]


def test_a_stage_that_goes_on_is_asked_to_stop_at_its_limit_and_continued_after_those_that_were_never_tried(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("gpu_proof._GRACE_S", 2.0)
    monkeypatch.setattr("gpu_proof._LEAST_S", 0.0)
    wait = "import signal, time, sys; signal.signal(15, lambda *_: (open(r'{out}/notes.txt', 'a').write('stopped '), "
    code = wait + "sys.exit(0))); n = len(open(r'{out}/notes.txt', 'a+').read()); "
    code += "import os; os.path.getsize(r'{out}/notes.txt') or time.sleep(60)"
    grid = stage("grid", code, minutes=0.04, goes_on=True, afterwards=(sys.executable, "-c", note("built")))
    order = stage("other", note("b"), minutes=0.5)
    proof = Proof(tmp_path, "cpu", [grid, order])
    assert proof.run(grid, 100).state == "stopped"
    assert notes(tmp_path, "grid") == ["stopped", "built"]
    assert proof.next_stage(100, set()).name == "other"
    work_through(proof, 10, tmp_path / "bundle.gz")
    assert states(proof) == ["done", "done"]


def test_killed_with_sigkill_it_takes_its_stage_along_and_goes_on_with_it_when_started_again(tmp_path):
    code = f"""
import sys; sys.path[:0] = [{str(BENCHMARKS)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from test_gpu_proof import note, prove, stage
wait = "import os, time; open(r'{{out}}/pid', 'w').write(str(os.getpid())); time.sleep(60)"
prove(Path({str(tmp_path)!r}), [stage("first", note("a")), stage("second", note("b", wait))])
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    pid_file = tmp_path / "second/pid"
    while not (pid_file.exists() and pid_file.read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    pid = int(pid_file.read_text())
    for _ in range(10_000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.02)
    else:
        pytest.fail("the stage outlived the proof")
    _, proof = prove(tmp_path, [stage("first", note("a")), stage("second", note("b"))])
    assert states(proof) == ["done", "done"]
    assert (notes(tmp_path, "first"), notes(tmp_path, "second")) == (["a"], ["b", "b"])


def test_the_bundle_counts_on_another_machine_and_holds_no_weights(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    leave = "open(r'{out}/weights.safetensors', 'w'); open(r'{out}/speed.json', 'w').write('[1]')"
    stages = [stage("first", note("a", leave))]
    prove(here, stages)
    with tarfile.open(here / "bundle.gz") as bundle:
        bundle.extractall(there, filter="data")
    assert json.loads((there / "first/speed.json").read_text()) == [1]
    assert not (there / "first/weights.safetensors").exists()
    assert states(prove(there, stages)[1]) == ["done"]
    assert notes(there, "first") == ["a"]


def test_every_stage_fits_into_eight_minutes_and_has_a_name_of_its_own():
    assert all(stage.minutes <= 8 for stage in STAGES)
    assert len({stage.name for stage in STAGES}) == len(STAGES)


def test_the_command_lists_every_stage(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "gpu_proof.py"), "--list", "--work", str(tmp_path)]
    listed = subprocess.run(command, capture_output=True, text=True)
    assert [line.split()[3] for line in listed.stdout.splitlines()] == [stage.name for stage in STAGES], listed.stderr
