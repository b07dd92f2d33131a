"""Links into somebody else's files, in the place of each file and folder that a run writes, appends to or removes.

What they lead to must stay as it is, bit for bit; the run does without, or is refused by an error that says so.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from fault_commits import commit_checkpoint, run_alone
from fault_counts import Counts, Fault
from fault_records import EXPERIMENT, make_begun_run, make_result, write_maps

from launchers.slurm.lost_starts import note_start
from suite.base.errors import SuiteError
from suite.store import attempts
from suite.store.heartbeat import Heartbeat
from suite.store.run_directory import RunDirectory

Work = Callable[[Path], bool]  # works in a folder; whether it was refused
_FOLDERS = (
    "checkpoint",
    "checkpoint/partial-1",
    "checkpoint/step-1",
    "checkpoint/step-7",
    "checkpoint/unusable-step-1",
)


def link(work: Work, names: tuple[str, ...], num: int, draw: Random, folder: Path) -> Counts:
    """Put a link in the place of one of these files or folders, and work there.

    Args:
        work: what writes to them.
        names: the files or folders, below its folder.
        num: links.
        draw: says which.
        folder: for all.
    """
    total = Counts()
    for number in range(num):
        place, foreign = folder / f"{number}", folder / f"{number}-foreign"
        name = draw.choice(names)
        _make_foreign(foreign)
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(foreign if name in _FOLDERS else foreign / "file")
        before = _list(foreign)
        refused = work(place)
        if _list(foreign) == before:
            total += Counts(1, noticed=int(refused), equal=1)
        else:
            total += Counts(1, lost=1, stories=(f"{name} is a link, and what it leads to was changed",))
        shutil.rmtree(place)
    return total


def _make_foreign(foreign: Path) -> None:
    for name in ("mine", "step-1", "step-2", "partial-1", "unusable-step-1"):
        (foreign / name).mkdir(parents=True)
        (foreign / name / "file").write_text("somebody else's", encoding="utf-8")
    (foreign / "file").write_text("somebody else's", encoding="utf-8")


def _list(foreign: Path) -> list[tuple[str, bytes]]:
    return sorted(
        (str(path.relative_to(foreign)), path.read_bytes() if path.is_file() else b"") for path in foreign.rglob("*")
    )


def _write_checkpoints(place: Path) -> bool:
    return not run_alone(commit_checkpoint, place)


def _write_records(place: Path) -> bool:
    """All that a run writes from its start to its end, whichever of it is refused."""
    run = RunDirectory.of(place, EXPERIMENT)
    steps: list[Callable[[], object]] = [
        lambda: make_begun_run(place),
        lambda: attempts.record_start(run, 1),
        lambda: run.append_metrics({"step": 4}),
        lambda: run.keep_metrics_until(2),
        lambda: Heartbeat(run),
        lambda: _claim(run),
        lambda: write_maps(run),
        lambda: run.write_result(make_result()),
        lambda: run.set_result_aside(".json.void"),
        lambda: note_start("node", place, 0, "status 1"),
    ]
    refused = [_is_refused(step) for step in steps]
    return any(refused)


def _claim(run: RunDirectory) -> None:
    with run.claim():
        pass


def _is_refused(step: Callable[[], object]) -> bool:
    try:
        step()
    except SuiteError:
        return True
    return False


def faults() -> list[Fault]:
    """Links in the place of folders and of files."""
    os.environ.setdefault("SLURM_JOB_ID", "1")
    run = RunDirectory.of(Path(), EXPERIMENT)
    files = ("attempts", "metrics", "heartbeat", "claim", "result", "failure", "experiment")
    names = (*(str(getattr(run, f"{name}_path")) for name in files), "starts.jsonl")
    return [
        Fault("linked folder", functools.partial(link, _write_checkpoints, _FOLDERS, 5), rounds=10, rounds_in_tests=1),
        Fault("linked file", functools.partial(link, _write_records, names, 20), rounds=20, rounds_in_tests=1),
    ]
