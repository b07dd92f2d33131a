"""The published claims are what the published records say: every paper judged anew at every scale."""

import contextlib
import csv
import functools
import io

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.joined_stores import joined
from leaderboards.judged_claims import judge
from leaderboards.packed_records import SUFFIX, unpacked
from leaderboards.published_boards import PUBLISHED, list_boards
from leaderboards.text.claims import render_claims_csv
from suite.papers import get_suite, list_claims, list_suites


def boards_of(paper, scale):
    suites = [name for name in list_suites() if get_suite(name).paper == paper.title]
    return [board for name in suites for board in list_boards(PUBLISHED / name) if board.stem == scale]


JUDGED = [(paper, scale) for paper in list_claims() for scale in ("laptop", "desktop") if boards_of(paper, scale)]


def judged_anew(paper, scale):
    boards = boards_of(paper, scale)
    suites = {name for name in list_suites() if scale in get_suite(name).profiles}
    with contextlib.ExitStack() as stack:
        records = [stack.enter_context(unpacked(board.with_suffix(f".{SUFFIX}"))) for board in boards]
        store = stack.enter_context(joined(records))
        find = functools.cache(lambda name: make_leaderboard(get_suite(name), scale, store) if name in suites else None)
        return list(csv.DictReader(io.StringIO(render_claims_csv(judge(find, scale, [paper])))))


def published():
    return list(csv.DictReader((PUBLISHED / "claims.csv").open()))


def test_every_paper_and_scale_with_boards_has_its_claims_judged():
    assert {(paper.name, scale) for paper, scale in JUDGED} == {(row["paper"], row["scale"]) for row in published()}


@pytest.mark.parametrize(("paper", "scale"), JUDGED, ids=lambda value: getattr(value, "name", value))
def test_the_published_claims_of_a_paper_are_judged_by_its_published_records(paper, scale):
    assert [row for row in published() if (row["paper"], row["scale"]) == (paper.name, scale)] == judged_anew(
        paper, scale
    )
