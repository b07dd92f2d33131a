"""Links into somebody else's files, in the place of each file and folder that a run writes, appends to or removes.

What they lead to must stay as it is, bit for bit; the run does without, or is refused by an error that says so.
"""

import functools
import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from campaign import Fault
from commits import commit_checkpoint
from kills import alone, run_alone
from whole_files import EXPERIMENT, make_begun_run, make_result, write_maps

from launchers.slurm.lost_starts import note_start
from suite.base.errors import SuiteError
from suite.store import attempts
from suite.store.heartbeat import Heartbeat
from suite.store.run_directory import RunDirectory

FOLDERS = ["checkpoint", *(f"checkpoint/{name}" for name in ("partial-1", "step-1", "step-7", "unusable-step-1"))]
RECORDS = ("attempts", "metrics", "heartbeat", "claim", "result", "failure", "experiment")
RUN = RunDirectory.of(Path(), EXPERIMENT)
FILES = [*(str(getattr(RUN, f"{name}_path")) for name in RECORDS), "starts.jsonl"]


def link(work, names, num, tally, draw, folder):
    """Put a link in the place of one of these files or folders and work there, so many times."""
    for number in range(num):
        place, foreign, name = folder / f"{number}", folder / f"{number}-foreign", draw.choice(names)
        make_foreign(foreign)
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).symlink_to(foreign if name in FOLDERS else foreign / "file")
        before = read_all(foreign)
        is_refused = work(place)
        if read_all(foreign) == before:
            tally.add(noticed=is_refused, equal=True)
        else:
            tally.add(f"{name} is a link, and what it leads to was changed")
        shutil.rmtree(place)


def make_foreign(foreign):
    for name in ("mine", "step-1", "step-2", "partial-1", "unusable-step-1"):
        (foreign / name).mkdir(parents=True)
        (foreign / name / "file").write_text("somebody else's")
    (foreign / "file").write_text("somebody else's")


def read_all(foreign):
    return {path: path.read_bytes() if path.is_file() else b"" for path in foreign.rglob("*")}


def write_checkpoints(place):
    return not alone(run_alone, commit_checkpoint, place)


def write_records(place):
    """All that a run writes from its start to its end; gives whether any of it is refused."""
    run = RunDirectory.of(place, EXPERIMENT)
    steps = [
        lambda: make_begun_run(place),
        lambda: attempts.record_start(run, 1),
        lambda: run.append_metrics({"step": 4}),
        lambda: run.keep_metrics_until(2),
        lambda: Heartbeat(run),
        lambda: claim(run),
        lambda: write_maps(run),
        lambda: run.write_result(make_result()),
        lambda: run.set_result_aside(".json.void"),
        lambda: note_start("node", place, 0, "status 1"),
    ]
    with patch.dict(os.environ, {"SLURM_JOB_ID": "1"}):
        return sum(is_refused(step) for step in steps) > 0  # all of them are taken, whichever is refused


def claim(run):
    with run.claim():
        pass


def is_refused(step):
    try:
        step()
    except SuiteError:
        return True
    return False


FAULTS = [
    Fault("linked folder", functools.partial(link, write_checkpoints, FOLDERS, 5), rounds=10, in_tests=1),
    Fault("linked file", functools.partial(link, write_records, FILES, 20), rounds=20, in_tests=1),
]


@pytest.mark.campaign
def test_what_a_link_leads_to_stays_as_it_is(play):
    assert play()["injected"] >= 5
