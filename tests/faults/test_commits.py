"""Kills between any two system calls of a commit: of a checkpoint, of a result, or of the removal of checkpoints."""

import functools
from pathlib import Path
from random import Random

import commits
import pytest
from campaign import Fault
from kills import alone, attack

from suite.base.files import write_atomically


def kill(commit, go_on, find_end, num, tally, draw, folder):
    found = alone(attack, commit, go_on, find_end, num, draw, folder)
    tally.counts, tally.stories = found.counts, found.stories


CHECKPOINT = (commits.commit_checkpoint, commits.go_on_from_checkpoint, commits.read_digest, 10)
RESULT = (commits.commit_result, commits.go_on_to_result, commits.read_end, 50)
REMOVAL = (commits.commit_removal, commits.go_on_from_removal, commits.list_checkpoints, 50)
FAULTS = [
    Fault("killed between two system calls, removal of checkpoints", functools.partial(kill, *REMOVAL), 20, in_tests=1),
    Fault("killed between two system calls, checkpoint", functools.partial(kill, *CHECKPOINT), 40, in_tests=1),
    Fault("killed between two system calls, result", functools.partial(kill, *RESULT), 20, in_tests=1),
]


@pytest.mark.campaign
def test_a_commit_that_is_killed_leaves_the_state_before_or_after(play):
    play()


@pytest.mark.parametrize(("write", "is_lost"), [(Path.write_bytes, True), (write_atomically, False)])
def test_a_commit_that_can_be_seen_half_done_is_lost_and_an_atomic_one_is_not(tmp_path, write, is_lost):
    def commit(folder, begin):
        begin()
        write(folder / "file", b"new")

    def go_on(folder, begin):  # takes what is there for whole
        if not (folder / "file").exists():
            (folder / "file").write_bytes(b"new")

    found = attack(commit, go_on, lambda folder: (folder / "file").read_bytes(), 40, Random(0), tmp_path).counts
    assert found["injected"] == 40
    assert found["noticed"] > 0
    assert (found["lost"] > 0) is is_lost
