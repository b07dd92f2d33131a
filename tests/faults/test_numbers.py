"""Numbers out of range in every JSON file that is read, and results that were changed under, or without, their seal.

A number gets a value that no file of ours has, and a result its seal anew, so that only the number is wrong.
"""

import functools
import json

import pytest
from campaign import Fault
from subjects import JSON_FILES, places
from whole_files import make_finished_run

from suite.base.errors import RecordError
from suite.base.reading import seal, unseal

ROUND = 50  # numbers
TOO_LARGE = ["1" + 400 * "0", "1" + 30 * "0", "1e308", "1e999"]
OUT_OF_RANGE = [*TOO_LARGE, "-1", "-1e-320", "NaN", "[33.9]", "true", '"7"', "null"]
MARK = "a number"  # in whose place one that Python could not write is spelt


def spoil_numbers(make, tally, draw, folder):
    """Put numbers out of range into a file; each has to be refused, or passed over, and told by an error of ours."""
    subject = make(folder)
    whole, is_result = subject.path.read_bytes(), subject.path.name == "result.json"
    subject.read()  # whole, it can be read
    for _ in range(ROUND):
        spelt = draw.choice(OUT_OF_RANGE)
        data = spoil(unseal(whole) if is_result else whole, spelt, draw)
        try:
            subject.try_out(seal(data) if is_result else data, tally)
        except Exception as error:
            tally.add(f"{subject.path.name} with {spelt[:40]}: {type(error).__name__}: {error}")


def spoil(whole, spelt, draw):
    lines = whole.decode().splitlines() if whole.count(b"\n{") else [whole.decode()]
    number = draw.randrange(len(lines))
    content = json.loads(lines[number])
    found = list(places(content))
    holder, key = draw.choice([(h, k) for h, k in found if type(h[k]) in (int, float)] or found)
    holder[key] = MARK
    lines[number] = json.dumps(content, indent=None if len(lines) > 1 else 1).replace(json.dumps(MARK), spelt)
    return "\n".join(lines).encode() + b"\n" * (len(lines) > 1)


def change_results(tally, draw, folder):
    """Raise a result's accuracy: under the seal it has, without one, or without one under an older form's number."""
    run = make_finished_run(folder)
    whole = run.result_path.read_bytes()
    for _ in range(ROUND):
        content = json.loads(whole)
        content["top1_percent"] = content["best_top1_percent"] = round(draw.uniform(41, 80), 2)
        content["top5_percent"] = 90.0
        how = draw.choice(["the seal it had", "no seal", "no seal, and an older form"])
        if how != "the seal it had":
            del content["sha256"]
        if how == "no seal, and an older form":
            content["format_version"] = draw.randint(1, 3)
        run.result_path.write_text(json.dumps(content, indent=1))
        try:
            run.read_result()
            tally.add(f"a changed result with {how} is accepted")
        except RecordError:
            tally.add(noticed=True)


FAULTS = [
    Fault(f"number out of range, {name}", functools.partial(spoil_numbers, make), rounds=20, in_tests=1)
    for name, make in JSON_FILES.items()
] + [Fault("changed result", change_results, rounds=20, in_tests=1)]


@pytest.mark.campaign
def test_a_number_out_of_range_or_a_changed_result_is_not_read_as_a_number(play):
    assert play()["injected"] == ROUND
