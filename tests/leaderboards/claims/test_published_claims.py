"""The published claims are what the published records say: judged anew wherever a paper's boards all have theirs.

One board has none; of it the claims ask for accuracies alone, which its list of runs has.
"""

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
from leaderboards.published_boards import PUBLISHED, list_boards, read_own_runs
from leaderboards.text.claims import render_claims_csv
from suite.suites import get_suite, list_suites

SCALES = ("laptop", "desktop")
WITHOUT_RECORDS = PUBLISHED / "sample_efficiency" / "laptop.md"


def boards_of(paper, scale):
    suites = [name for name in list_suites() if get_suite(name).paper == paper.title]
    return [board for name in suites for board in list_boards(PUBLISHED / name) if board.stem == scale]


def records_of(board):
    return board.with_suffix(f".{SUFFIX}")


RECORDED = [
    (paper, scale)
    for paper in ALL_CLAIMS
    for scale in SCALES
    if (boards := boards_of(paper, scale))
    and all(records_of(board).exists() or board == WITHOUT_RECORDS for board in boards)
]


@pytest.fixture
def accuracies(finish_in, tmp_path):
    """A store of the runs that are published without records: with their accuracies, and nothing else of theirs."""
    found = {run["run"]: float(run["top1_percent"]) for run in read_own_runs(WITHOUT_RECORDS)}
    suite = get_suite(WITHOUT_RECORDS.parent.name)
    for experiment in suite.profile(WITHOUT_RECORDS.stem).experiments(num_seeds=8):
        finish_in(tmp_path, experiment, found.pop(experiment.id))
    assert not found
    return tmp_path


def judged_anew(paper, scale, accuracies):
    boards = boards_of(paper, scale)
    suites = {board.parent.name for board in boards}
    stores = [accuracies if board == WITHOUT_RECORDS else records_of(board) for board in boards]
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(joined([stack.enter_context(unpacked(path)) for path in stores]))
        find = functools.cache(lambda name: make_leaderboard(get_suite(name), scale, store) if name in suites else None)
        return list(csv.DictReader(io.StringIO(render_claims_csv(judge(find, store, scale, [paper])))))


def test_every_paper_and_scale_that_is_published_can_be_judged_anew():
    published = csv.DictReader((PUBLISHED / "claims.csv").open())
    assert {(paper.name, scale) for paper, scale in RECORDED} == {(row["paper"], row["scale"]) for row in published}


@pytest.mark.parametrize(("paper", "scale"), RECORDED, ids=lambda value: getattr(value, "name", value))
def test_the_published_claims_of_a_paper_are_judged_by_its_published_records(paper, scale, accuracies):
    published = csv.DictReader((PUBLISHED / "claims.csv").open())
    assert [row for row in published if (row["paper"], row["scale"]) == (paper.name, scale)] == judged_anew(
        paper, scale, accuracies
    )
