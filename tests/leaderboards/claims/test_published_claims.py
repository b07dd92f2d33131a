"""The published claims are what the published records say: judged anew wherever a paper's boards all have theirs."""

import contextlib
import csv
import functools
import io

import pytest

from leaderboards.boards import make_leaderboard
from leaderboards.claims import ALL_CLAIMS
from leaderboards.claims.judged import judge
from leaderboards.joined_stores import joined
from leaderboards.packed_records import SUFFIX, unpacked
from leaderboards.published_boards import PUBLISHED, list_boards
from leaderboards.text.claims import render_claims_csv
from suite.suites import get_suite, list_suites

SCALES = ("laptop", "desktop")


def boards_of(paper, scale):
    suites = [name for name in list_suites() if get_suite(name).paper == paper.title]
    return [board for name in suites for board in list_boards(PUBLISHED / name) if board.stem == scale]


def records_of(paper, scale):
    return [board.with_suffix(f".{SUFFIX}") for board in boards_of(paper, scale)]


RECORDED = [
    (paper, scale)
    for paper in ALL_CLAIMS
    for scale in SCALES
    if (records := records_of(paper, scale)) and all(path.exists() for path in records)
]


def judged_anew(paper, scale):
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(joined([stack.enter_context(unpacked(path)) for path in records_of(paper, scale)]))
        boards = {board.parent.name for board in boards_of(paper, scale)}
        find = functools.cache(lambda name: make_leaderboard(get_suite(name), scale, store) if name in boards else None)
        return list(csv.DictReader(io.StringIO(render_claims_csv(judge(find, store, scale, [paper])))))


def test_there_are_papers_whose_boards_all_have_records():
    assert RECORDED


@pytest.mark.parametrize(("paper", "scale"), RECORDED, ids=lambda value: getattr(value, "name", value))
def test_the_published_claims_of_a_paper_are_judged_by_its_published_records(paper, scale):
    published = csv.DictReader((PUBLISHED / "claims.csv").open())
    assert [row for row in published if (row["paper"], row["scale"]) == (paper.name, scale)] == judged_anew(
        paper, scale
    )
