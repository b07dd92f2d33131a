"""A few rounds of each stage of the campaign of faults, and that what is lost is counted as lost."""

import json
import os
import platform
import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))  # scripts find each other there

from fault_bits import flip  # noqa: E402
from fault_commits import attack  # noqa: E402
from fault_counts import Counts, Fault, write_table  # noqa: E402
from fault_inputs import Subject, fuzz  # noqa: E402
from faults import Tally, describe, work_through  # noqa: E402

from suite.base.commit import commit  # noqa: E402
from suite.base.errors import RecordError  # noqa: E402
from suite.base.files import write_atomically  # noqa: E402

LEAST = {"files": 650, "numbers": 550, "links": 25, "bits": 175, "commits": 110, "runs": 2, "grids": 1}
FOREVER = float("inf")
WHOLE = '{"a": 1}'


@pytest.mark.parametrize("stage", LEAST)
def test_a_few_rounds_of_a_stage_lose_nothing(tmp_path, stage):
    command = [sys.executable, str(BENCHMARKS / "faults.py"), "--short", "--stage", stage, "--work", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads((tmp_path / f"{stage}.json").read_text())["counts"].values()
    assert sum(one["injected"] for one in counts) >= LEAST[stage], done.stdout


def draw():
    return random.Random(0)


def flip_digits(path, read):
    path.write_text("12345")
    return flip(lambda folder: (lambda: read(path.read_bytes().decode("latin-1")), [path]), 50, draw(), path.parent)


def test_a_flipped_bit_that_gives_another_number_or_an_error_that_is_not_ours_is_lost(tmp_path):
    found = flip_digits(tmp_path / "file", int)
    assert (found.injected, found.lost) == (50, 50)
    assert 0 < found.noticed < 50


def test_a_flipped_bit_that_changes_nothing_is_not_lost(tmp_path):
    found = flip_digits(tmp_path / "file", lambda text: text[0])
    assert (found.injected, found.noticed) == (50, 0)
    assert found.lost == 50 - found.equal > 0


def test_a_reader_that_hangs_is_given_up_and_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("fault_inputs._LIMIT_S", 1)
    path = tmp_path / "file.json"
    path.write_text(WHOLE)
    subject = Subject(path, lambda: path.read_bytes() == WHOLE.encode() or time.sleep(60))
    found = fuzz(lambda folder: subject, 2, draw(), tmp_path)
    assert found.lost == 1
    assert "still being read" in found.stories[0]


def test_an_error_that_is_not_ours_ends_a_fuzzed_round_as_lost(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(WHOLE)
    found = fuzz(lambda folder: Subject(path, lambda: json.loads(path.read_bytes())["a"]), 200, draw(), tmp_path)
    assert found.lost == 1


def test_an_error_of_ours_is_noticed(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(WHOLE)

    def read():
        if path.read_bytes() != WHOLE.encode():
            raise RecordError("changed")

    found = fuzz(lambda folder: Subject(path, read), 100, draw(), tmp_path)
    assert found.lost == 0
    assert found.noticed > 50


@pytest.mark.parametrize(("write", "is_lost"), [(Path.write_bytes, True), (write_atomically, False)])
def test_a_commit_that_can_be_seen_half_done_is_lost_and_an_atomic_one_is_not(tmp_path, write, is_lost):
    def commit(folder, begin):
        begin()
        write(folder / "file", b"new")

    def go_on(folder, begin):  # takes what is there for whole
        if not (folder / "file").exists():
            (folder / "file").write_bytes(b"new")

    found = attack(commit, go_on, lambda folder: (folder / "file").read_bytes(), 40, draw(), tmp_path)
    assert found.injected == 40
    assert found.noticed > 0
    assert (found.lost > 0) is is_lost


def test_a_campaign_goes_on_where_it_ended_and_shows_its_counts(tmp_path):
    played = []

    def inject(draw, folder):
        played.append(draw.random())
        if len(played) == 3:
            raise KeyError("an error of the fault itself")
        return Counts(10, noticed=10, equal=9, lost=1, stories=("a story",))

    faults = [Fault("a fault", inject, rounds=5, rounds_in_tests=2)]
    work_through("stage", faults, tmp_path, FOREVER, is_short=True)
    assert len(played) == 2
    tally = work_through("stage", faults, tmp_path, FOREVER)
    assert len(set(played)) == 5
    stories = ["a story", "a story", "KeyError: 'an error of the fault itself'", "a story", "a story"]
    assert tally.counts["a fault"] == Counts(41, 40, None, 36, 5, tuple(stories))
    work_through("stage", faults, tmp_path, FOREVER)
    assert len(played) == 5
    table = write_table({"stage": tally.counts})
    assert "| stage | a fault | 41 | 40 | - | 36 | 5 |" in table
    assert "| stage | all | 41 | 40 | - | 36 | 5 |" in table
    assert os.listdir(tmp_path) == ["stage.json"]


def test_a_table_says_on_which_machine_and_when_faults_were_injected_and_into_which_code_and_never_whose_machine(
    tmp_path,
):
    work_through("stage", [Fault("a fault", lambda draw, folder: Counts(1), rounds=1)], tmp_path, FOREVER)
    said = describe([Tally.read(tmp_path / "stage.json"), Tally.read(tmp_path / "other.json")])
    assert f"{os.cpu_count()} cores.\n" in said
    assert f"\n| stage | {datetime.now(UTC):%Y-%m-}" in said
    assert f"`{commit()[:10]}" in said
    assert "other" not in said  # it has injected nothing
    assert platform.node() not in said
