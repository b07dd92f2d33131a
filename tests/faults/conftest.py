"""Plays the rounds of the fault campaign: a few of each stage among the tests, all with --campaign-minutes."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # processes that are started from here import these modules, too
from campaign import STAGES, Round, find_lost, rounds_of, write_counts

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "runs" / "faults"


def pytest_addoption(parser):
    help_text = "play the whole fault campaign; begin no round after so many minutes"
    parser.addoption("--campaign-minutes", type=float, metavar="MINUTES", help=help_text)


def _minutes(config):
    return config.getoption("--campaign-minutes", default=None)  # not known where all tests are collected


def pytest_generate_tests(metafunc):
    if "play" in metafunc.fixturenames:
        rounds = rounds_of(metafunc.module, None if _minutes(metafunc.config) is None else _KEPT)
        metafunc.parametrize("play", rounds, indirect=True, ids=[f"{one.fault.name} {one.number}" for one in rounds])


def pytest_collection_modifyitems(config, items):
    """Let all faults take turns, so that each has had its share when the time is up; leave out a stage without any."""
    if _minutes(config) is not None:
        rounds = {item: item.callspec.params["play"] for item in items if item.get_closest_marker("campaign")}
        items[:] = [item for item in items if isinstance(rounds.get(item), Round)]
        items.sort(key=lambda item: (rounds[item].number, STAGES.index(rounds[item].stage)))


@pytest.fixture(scope="session")
def campaign_ends(request):
    """The moment on the monotonic clock; None among the tests."""
    minutes = _minutes(request.config)
    return None if minutes is None else time.monotonic() + 60 * minutes


@pytest.fixture
def play(request, campaign_ends, fork):
    """Plays the round and gives its counts; nothing may be lost.

    What runs in a process of its own is forked from the server of `fork`.
    """
    one: Round = request.param

    def play(**given):
        if campaign_ends is None:
            tally = one.play(**given)
        elif time.monotonic() > campaign_ends:
            pytest.skip("the time is up")
        else:
            tally = one.play(_KEPT, **given)
        assert not tally.stories
        return tally.counts

    return play


def pytest_sessionfinish(session, exitstatus):
    """Write the counts of all rounds that were ever played; fail if any of them has lost something."""
    config = session.config
    if _minutes(config) is None or config.option.collectonly or hasattr(config, "workerinput"):
        return
    write_counts(_ROOT / "docs" / "faults.md", _KEPT)
    if find_lost(_KEPT):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # no round was missing
        session.exitstatus = pytest.ExitCode.OK
