"""The parts of the fault campaign: faults, their rounds, and the table of what became of them.

The test module of a stage has FAULTS, and a test that takes `play`. The tests play a few rounds of them; `make faults`
plays all that are missing in runs/faults, and leaves a file there for each.
"""

import json
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from suite.base.commit import commit
from suite.base.files import write_atomically
from suite.spec.resources import Resources
from suite.training.environment import device_name

STAGES = ("files", "numbers", "links", "bits", "commits", "runs", "grids", "cluster")  # shortest first
COLUMNS = ("injected", "noticed", "resumed", "equal", "lost")
HEADING = "## Counts\n"


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    `inject` takes a Tally, a generator of random numbers of its own, and an empty folder. `rounds` says how often the
    whole campaign calls it, `in_tests` how often the tests do.
    """

    name: str
    inject: Callable
    rounds: int
    in_tests: int = 0


@dataclass
class Tally:
    """Counts of outcomes, and the story of each fault that was lost.

    lost: it left a wrong number, a hang, an error that is none of ours, or a run that does not go on. The other columns
    stand in docs/faults.md; those that no fault of a kind can have are not counted.
    """

    counts: Counter = field(default_factory=Counter)
    stories: list = field(default_factory=list)

    def add(self, story="", **outcomes):
        """Count one fault, which is lost if there is a story of it."""
        outcomes = {"injected": 1, "noticed": 0, "lost": bool(story)} | outcomes
        self.counts.update({name: int(value) for name, value in outcomes.items()})
        self.stories += [story[:400]] * bool(story)

    def judge(self, noticed, resumed, equal, story):
        """Count one fault after which a run was started again; it is lost unless that ended well, with equal bits."""
        self.add("" if resumed and equal else story, noticed=noticed, resumed=resumed, equal=equal)


@dataclass(frozen=True)
class Round:
    """One round of a fault; its places and moments depend on the fault's name and this number alone."""

    stage: str
    fault: Fault
    number: int

    def path(self, kept):
        """The file that tells what became of it."""
        return kept / self.stage / f"{self.fault.name}, {self.number}.json"

    def play(self, kept=None, **given):
        """Inject the fault, and keep the counts in this folder; an error of the fault itself counts as lost."""
        tally, began = Tally(), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.fault.inject(tally, Random(f"{self.fault.name} {self.number}"), Path(folder), **given)
            except Exception as error:
                traceback.print_exc()
                tally.add(f"{type(error).__name__}: {error}")
        if kept is not None:
            record = {"fault": self.fault.name, "counts": tally.counts, "stories": tally.stories, "commit": commit()}
            record |= {"day": f"{datetime.now(UTC):%Y-%m-%d}", "hours": (time.monotonic() - began) / 3600}
            self.path(kept).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path(kept), json.dumps(record, indent=1).encode())
        return tally


def rounds_of(module, kept=None):
    """The few rounds of a stage's module that are among the tests; those of all that are missing in this folder."""
    stage = Path(module.__file__).stem.removeprefix("test_")
    if kept is None:
        return [Round(stage, fault, number) for fault in module.FAULTS for number in range(fault.in_tests)]
    rounds = [Round(stage, fault, number) for fault in module.FAULTS for number in range(fault.rounds)]
    return [one for one in rounds if not one.path(kept).exists()]


def find_lost(kept):
    """The files of the rounds that have lost something; without its file, a round is played again."""
    return [path for path in sorted(kept.rglob("*.json")) if json.loads(path.read_text())["stories"]]


def leave_out(reason):
    """Skip a fault that this machine does not let us inject; CI's must."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


def describe(kept):
    """Markdown: where and when each stage's faults were injected and into which code, and the counts by fault."""
    when = ["| stage | day (UTC) | commit | hours |", "| --- | --- | --- | ---: |"]
    rows, sums, total = [], [], Counter()
    for stage in STAGES:
        records = [json.loads(path.read_text()) for path in sorted(kept.glob(f"{stage}/*.json"))]
        if not records:
            continue
        commits = sorted({f"`{one['commit'][:10]}{'+changes' * ('+' in one['commit'])}`" for one in records})
        days, hours = sorted({one["day"] for one in records}), sum(one["hours"] for one in records)
        when.append(f"| {stage} | {', '.join(days)} | {', '.join(commits)} | {hours:.2f} |")
        of_fault, of_stage = {}, Counter()
        for one in records:
            of_fault.setdefault(one["fault"], Counter()).update(one["counts"])
            of_stage.update(one["counts"])
        rows += [_row(stage, name, counts) for name, counts in of_fault.items()]
        sums.append(_row(stage, "all", of_stage))
        total.update(of_stage)
    header = [f"| stage | fault | {' | '.join(COLUMNS)} |", f"| --- | --- |{' ---: |' * len(COLUMNS)}"]
    where = f"{device_name(Resources())}, {os.cpu_count()} cores."
    return "\n".join([where, "", *when, "", *header, *rows, *sums, _row("all", "all", total)]) + "\n"


def _row(stage, name, counts):
    numbers = (f"{counts[column]:,}" if column in counts else "-" for column in COLUMNS)
    return f"| {stage} | {name} | {' | '.join(numbers)} |"


def write_counts(page, kept):
    """Put the counts in the place of those at the end of a page."""
    text, heading, _ = page.read_text().partition(HEADING)
    write_atomically(page, f"{text}{heading}\n{describe(kept)}".encode())
