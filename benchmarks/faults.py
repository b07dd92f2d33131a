"""Inject faults by the thousand into training, grid and files, and count what became of them.

    python benchmarks/faults.py [--minutes 600] [--stage NAME …] [--only WORDS …] [--work DIR] [--short]

Each stage leaves ``<work>/<stage>.json`` after each round of a fault, so that a campaign that was killed goes on where
it ended; ``<work>/table.md`` is the table of all counts. The exit status is 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "datasets")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # what is started here imports the same code
os.environ.setdefault("OMP_NUM_THREADS", "1")  # as runs have it: what several threads add up, they add otherwise

import filelock  # noqa: E402
from fault_counts import Counts, Fault, LeftOutError, write_table  # noqa: E402

from suite.base.commit import commit  # noqa: E402
from suite.base.files import write_atomically  # noqa: E402
from suite.spec.resources import Resources  # noqa: E402
from suite.training.environment import device_name  # noqa: E402

STAGES = {  # shortest first; a stage's faults lie in the module
    "files": "fault_inputs",
    "numbers": "fault_numbers",
    "links": "fault_links",
    "bits": "fault_bits",
    "commits": "fault_commits",
    "runs": "fault_runs",
    "grids": "fault_grids",
    "cluster": "fault_cluster",
}


@dataclass
class Tally:
    """One stage's counts so far by the fault's name, how many rounds of it were played, and of which code and when.

    Attributes:
        path: where it is kept.
        days: in UTC.
        hours: that the rounds have taken.
    """

    path: Path
    counts: dict[str, Counts] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    days: list[str] = field(default_factory=list)
    hours: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Tally:
        """Read what an earlier campaign has left; nothing where there was none."""
        if not path.exists():
            return cls(path)
        found = json.loads(path.read_text(encoding="utf-8"))
        counts = {name: Counts(**{**one, "stories": tuple(one["stories"])}) for name, one in found["counts"].items()}
        return cls(path, counts, found["rounds"], found["commits"], found["days"], found["hours"])

    def add(self, name: str, counts: Counts, hours: float) -> None:
        """Add one round, and keep all on disk."""
        self.counts[name] = self.counts.get(name, Counts()) + counts
        self.rounds[name] = self.rounds.get(name, 0) + 1
        self.commits = list(dict.fromkeys([*self.commits, commit()]))
        self.days = list(dict.fromkeys([*self.days, f"{datetime.now(UTC):%Y-%m-%d}"]))
        self.hours += hours
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        write_atomically(self.path, json.dumps(content, indent=1).encode())


def play(fault: Fault, number: int) -> Counts:
    """One round of a fault, whose places and moments depend on its name and number alone; an error is a loss."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return fault.inject(Random(f"{fault.name} {number}"), Path(folder))
        except LeftOutError as error:
            return Counts(stories=(f"left out: {error}",))
        except Exception as error:
            traceback.print_exc()
            return Counts(1, lost=1, stories=(f"{type(error).__name__}: {error}"[:300],))


def work_through(stage: str, faults: Sequence[Fault], work: Path, ends: float, is_short: bool = False) -> Tally:
    """Play the rounds that are missing, of all faults in turn, until the time is up.

    Args:
        stage: whose they are; names the file of its counts.
        faults: to play.
        work: folder of the counts.
        ends: on the monotonic clock.
        is_short: play as few rounds as the tests do.
    """
    tally = Tally.read(work / f"{stage}.json")
    wanted = {fault.name: fault.rounds_in_tests if is_short else fault.rounds for fault in faults}
    for number in range(max(wanted.values(), default=0)):
        for fault in faults:
            if tally.rounds.get(fault.name, 0) <= number < wanted[fault.name] and time.monotonic() < ends:
                began = time.monotonic()
                found = play(fault, number)
                tally.add(fault.name, found, (time.monotonic() - began) / 3600)
                print(
                    f"{stage}: {fault.name}: {found.injected} injected, {found.lost} lost", *found.stories, flush=True
                )
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 1 where anything was lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=600.0, help="when to stop starting rounds (default 600)")
    parser.add_argument("--stage", nargs="+", choices=list(STAGES), default=list(STAGES), metavar="NAME")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/faults"), help="folder of the counts (default %(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="WORDS", help="faults with any of these in their names"
    )
    parser.add_argument("--short", action="store_true", help="the few rounds that are among the tests")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * options.minutes
    with filelock.FileLock(options.work / "lock", timeout=5):
        for stage in options.stage:
            known = importlib.import_module(STAGES[stage]).faults()
            faults = [fault for fault in known if any(words in fault.name for words in options.only)]
            work_through(stage, faults, options.work, ends, options.short)
        tallies = [Tally.read(options.work / f"{stage}.json") for stage in STAGES]
        table = f"{describe(tallies)}\n\n{write_table({tally.path.stem: tally.counts for tally in tallies})}"
        write_atomically(options.work / "table.md", table.encode())
    print(table)
    return int(any(counts.lost for tally in tallies for counts in tally.counts.values()))


def describe(tallies: Sequence[Tally]) -> str:
    """Markdown: where and when each stage's faults were injected, and into which code; never on whose machine."""
    lines = [f"{device_name(Resources())}, {os.cpu_count()} cores.", "", "| stage | day (UTC) | commit | hours |"]
    lines += ["| --- | --- | --- | ---: |"]
    for tally in tallies:
        commits = (f"`{one[:10]}{'+changes' * one.endswith('+changes')}`" for one in tally.commits)
        if tally.counts:
            lines += [f"| {tally.path.stem} | {', '.join(tally.days)} | {', '.join(commits)} | {tally.hours:.2f} |"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
