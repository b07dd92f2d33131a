"""Files of every kind that we read, damaged by Hypothesis: each is read, or refused by an error of ours.

Whole files are cut, spliced and changed in single bytes; JSON also gets other values, names and shapes. What fails is
shrunk to the smallest such file.
"""

import functools
import json
import time
from random import Random

import pytest
from campaign import Fault, Tally
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from subjects import JSON_FILES, HangError, Subject, images_index, maps, places, weights

from suite.base.errors import RecordError

ROUND = 50  # inputs
WHOLE = b'{"a": 1}'
TOKENS = [
    *(b"[" * 20_000, b"null", b"NaN", b"1e999", b"\xff\xfe", b"\x00"),
    *(b"\n", b'"', b"{}", b"-", b"9" * 5000, b"\r\n\n"),
]
HOSTILE = ["NaN", "1e999", "\x1b[2J", "../..", "\udcff", "0", 10**400, -1, "a" * 5000, [[[]]], {"a": {}}]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)


@st.composite
def damaged_bytes(draw, whole):
    """Cut, spliced, or with other bytes in it."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 16))
        data[place : place + length] = draw(st.binary(max_size=16) | st.sampled_from(TOKENS))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@st.composite
def damaged_json(draw, whole):
    """One value of one line replaced, removed, doubled or given another name."""
    lines = whole.decode().splitlines() if whole.count(b"\n{") else [whole.decode()]
    number = draw(st.integers(0, len(lines) - 1))
    content = json.loads(lines[number])
    parent, key = draw(st.sampled_from(list(places(content))))
    match draw(st.sampled_from(["replace", "remove", "rename", "replace all"])):
        case "replace":
            parent[key] = draw(VALUES)
        case "remove":
            del parent[key]
        case "rename" if isinstance(parent, dict):
            parent[draw(st.text(max_size=8))] = parent.pop(key)
        case _:
            content = draw(VALUES)
    lines[number] = json.dumps(content)
    return "\n".join(lines).encode() + b"\n"


def fuzz(make, is_json, num, tally, draw, folder):
    """Let Hypothesis damage a file so many times; the first error that is none of ours ends the round."""
    subject = make(folder)
    whole = subject.path.read_bytes()
    subject.read()  # whole, it can be read
    damaged = damaged_bytes(whole) | damaged_json(whole) if is_json else damaged_bytes(whole)

    @seed(draw.getrandbits(32))
    @settings(
        max_examples=num,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged)
    def hold(data):
        subject.try_out(data, tally)

    try:
        hold()
    except (Exception, HangError) as error:
        what = f"{subject.path.name}: {subject.path.read_bytes()[:120]!r}"
        tally.add(f"{type(error).__name__}: {error}; {what}")


TENSORS = {
    "index of images": images_index,
    "weights": functools.partial(weights, False),
    "attention maps": functools.partial(maps, False),
}
FAULTS = [
    Fault(f"damaged input, {name}", functools.partial(fuzz, make, name in JSON_FILES, ROUND), rounds=20, in_tests=1)
    for name, make in (JSON_FILES | TENSORS).items()
]


@pytest.mark.campaign
def test_a_damaged_file_is_read_or_refused_by_an_error_of_ours(play):
    assert play()["injected"] >= ROUND


def fuzz_small_file(folder, num, read):
    path, tally = folder / "file.json", Tally()
    path.write_bytes(WHOLE)
    fuzz(lambda folder: Subject(lambda: read(path.read_bytes()), [path]), True, num, tally, Random(0), folder)
    return tally


def test_a_reader_that_hangs_is_given_up_and_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("subjects.LIMIT_S", 1)
    found = fuzz_small_file(tmp_path, 2, lambda data: data == WHOLE or time.sleep(60))
    assert found.counts["lost"] == 1
    assert "still being read" in found.stories[0]


def test_an_error_that_is_not_ours_ends_a_fuzzed_round_as_lost(tmp_path):
    assert fuzz_small_file(tmp_path, 200, lambda data: json.loads(data)["a"]).counts["lost"] == 1


def test_an_error_of_ours_is_noticed(tmp_path):
    def read(data):
        if data != WHOLE:
            raise RecordError("changed")

    found = fuzz_small_file(tmp_path, 100, read)
    assert found.counts["lost"] == 0
    assert found.counts["noticed"] > 50
