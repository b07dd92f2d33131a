"""Inject faults by the thousand into training, grid and files, and count what became of them.

    python benchmarks/faults.py [--minutes 600] [--stage NAME …] [--work DIR] [--short]

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
from pathlib import Path
from random import Random

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "datasets")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # what is started here imports the same code
os.environ.setdefault("OMP_NUM_THREADS", "1")  # as runs have it: what several threads add up, they add otherwise

import filelock  # noqa: E402
from fault_counts import Counts, Fault, LeftOutError, write_table  # noqa: E402

from suite.files import write_atomically  # noqa: E402

STAGES = {  # shortest first; a stage's faults lie in the module
    "files": "fault_inputs",
    "bits": "fault_bits",
    "commits": "fault_commits",
    "runs": "fault_runs",
    "grids": "fault_grids",
    "cluster": "fault_cluster",
}


@dataclass
class Tally:
    """One stage's counts so far, by the fault's name, and how many rounds of it were played."""

    path: Path
    counts: dict[str, Counts] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Tally:
        """Read what an earlier campaign has left; nothing where there was none."""
        if not path.exists():
            return cls(path)
        found = json.loads(path.read_text())
        counts = {name: Counts(**{**one, "stories": tuple(one["stories"])}) for name, one in found["counts"].items()}
        return cls(path, counts, found["rounds"])

    def add(self, name: str, counts: Counts) -> None:
        self.counts[name] = self.counts.get(name, Counts()) + counts
        self.rounds[name] = self.rounds.get(name, 0) + 1
        content = {"counts": {name: asdict(one) for name, one in self.counts.items()}, "rounds": self.rounds}
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
                found = play(fault, number)
                tally.add(fault.name, found)
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
    parser.add_argument("--short", action="store_true", help="the few rounds that are among the tests")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * options.minutes
    with filelock.FileLock(options.work / "lock", timeout=5):
        for stage in options.stage:
            faults = importlib.import_module(STAGES[stage]).faults()
            work_through(stage, faults, options.work, ends, options.short)
        known = {stage: Tally.read(options.work / f"{stage}.json").counts for stage in STAGES}
        table = write_table(known)
        write_atomically(options.work / "table.md", table.encode())
    print(table)
    return int(any(counts.lost for faults in known.values() for counts in faults.values()))


if __name__ == "__main__":
    sys.exit(main())
