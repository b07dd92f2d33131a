"""Numbers out of range in every JSON file that is read, and results that were changed under, or without, their seal.

A number gets a value that no file of ours has, and a result its seal anew, so that only the number is wrong.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from fault_counts import Counts, Fault
from fault_inputs import Subject, json_files, places
from fault_records import make_finished_run

from suite.base.errors import RecordError
from suite.base.reading import seal, unseal

_ROUND = 50  # numbers
_OUT_OF_RANGE = (
    "1" + 400 * "0",
    "1" + 30 * "0",
    "-1",
    "1e308",
    "1e999",
    "-1e-320",
    "NaN",
    "[33.9]",
    "true",
    '"7"',
    "null",
)
_MARK = "a number"  # in whose place one that Python could not write is spelt


def spoil(make: Callable[[Path], Subject], num: int, draw: Random, folder: Path) -> Counts:
    """Put numbers out of range into a file; each has to be refused, or passed over, and told by an error of ours.

    Args:
        make: makes the file.
        num: numbers.
        draw: says which, and what they become.
        folder: for the file.
    """
    subject = make(folder)
    whole, is_result = subject.path.read_bytes(), subject.path.name == "result.json"
    subject.read()  # whole, it can be read
    for _ in range(num):
        spelt = draw.choice(_OUT_OF_RANGE)
        data = _spoil(unseal(whole) if is_result else whole, spelt, draw)
        try:
            subject.try_out(seal(data) if is_result else data)
        except Exception as error:
            story = f"{subject.path.name} with {spelt[:40]}: {type(error).__name__}: {error}"[:300]
            subject.counts += Counts(1, lost=1, stories=(story,))
    return subject.counts


def _spoil(whole: bytes, spelt: str, draw: Random) -> bytes:
    lines = whole.decode().splitlines() if whole.count(b"\n{") else [whole.decode()]
    number = draw.randrange(len(lines))
    content = json.loads(lines[number])
    found = list(places(content))
    holder, key = draw.choice([(h, k) for h, k in found if type(h[k]) in (int, float)] or found)
    holder[key] = _MARK
    lines[number] = json.dumps(content, indent=None if len(lines) > 1 else 1).replace(json.dumps(_MARK), spelt)
    return "\n".join(lines).encode() + b"\n" * (len(lines) > 1)


def strip(num: int, draw: Random, folder: Path) -> Counts:
    """Raise a result's accuracy: under the seal it has, without one, or without one under an older form's number.

    Args:
        num: results.
        draw: says how.
        folder: for the run.
    """
    run = make_finished_run(folder)
    whole, total = run.result_path.read_bytes(), Counts()
    for _ in range(num):
        content = json.loads(whole)
        content["top1_percent"] = content["best_top1_percent"] = round(draw.uniform(41, 80), 2)
        content["top5_percent"] = 90.0
        how = draw.choice(["the seal it had", "no seal", "no seal, and an older form"])
        if how != "the seal it had":
            del content["sha256"]
        if how == "no seal, and an older form":
            content["format_version"] = draw.randint(1, 3)
        run.result_path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        try:
            run.read_result()
            total += Counts(1, lost=1, stories=(f"a changed result with {how} is accepted",))
        except RecordError:
            total += Counts(1, noticed=1)
    return total


def faults() -> list[Fault]:
    """10 kinds of files, with 50 numbers a round, and results whose seal is gone."""
    spoilt = [
        Fault(f"number out of range, {name}", functools.partial(spoil, make, _ROUND), rounds=20, rounds_in_tests=1)
        for name, make in json_files().items()
    ]
    return [*spoilt, Fault("changed result", functools.partial(strip, _ROUND), rounds=20, rounds_in_tests=1)]
