"""A campaign goes on where it ended, and its table shows what was counted, where and when."""

import os
import platform
from datetime import UTC, datetime
from types import SimpleNamespace

from campaign import Fault, Round, Tally, find_lost, rounds_of, write_counts

from suite.base.commit import commit
from suite.spec.resources import Resources
from suite.training.environment import device_name


def inject(tally, draw, folder):
    for _ in range(9):
        tally.add(noticed=True, equal=True)
    tally.judge(noticed=True, resumed=False, equal=False, story="a story")
    if draw.random() < 0.5:
        raise KeyError("an error of the fault itself")


def test_a_campaign_plays_the_rounds_that_are_missing_each_the_same_whenever_it_is_played(tmp_path):
    faults = [Fault("one", inject, rounds=9, in_tests=1), Fault("other", inject, rounds=2)]
    module = SimpleNamespace(__file__="tests/faults/test_files.py", FAULTS=faults)
    assert rounds_of(module) == [Round("files", faults[0], 0)]
    rounds = rounds_of(module, tmp_path)
    assert len(rounds) == 11
    tallies = [one.play(tmp_path) for one in rounds[:7]]
    assert rounds_of(module, tmp_path) == rounds[7:]
    assert tallies == [one.play() for one in rounds[:7]]
    assert {tally.stories[-1] for tally in tallies} == {"a story", "KeyError: 'an error of the fault itself'"}


def test_rounds_that_lost_something_are_found(tmp_path):
    whole = Round("files", Fault("whole", lambda tally, draw, folder: tally.add(), rounds=1), 0)
    lossy = Round("files", Fault("lossy", lambda tally, draw, folder: tally.add("a story"), rounds=1), 0)
    for one in (whole, lossy):
        one.play(tmp_path)
    assert find_lost(tmp_path) == [lossy.path(tmp_path)]


def test_what_is_lost_is_counted_as_lost_with_its_story():
    tally = Tally()
    tally.judge(noticed=False, resumed=True, equal=True, story="not lost")
    tally.judge(noticed=True, resumed=True, equal=False, story="lost")
    assert tally.counts == {"injected": 2, "noticed": 1, "resumed": 2, "equal": 1, "lost": 1}
    assert tally.stories == ["lost"]


def test_a_campaign_leaves_a_file_for_each_round_and_its_page_shows_counts_days_and_commits_and_never_whose_machine(
    tmp_path,
):
    kept, page = tmp_path / "kept", tmp_path / "page.md"
    tallies = [Round("bits", Fault("a fault", inject, rounds=100), number).play(kept) for number in range(100)]
    errors = sum(len(tally.stories) - 1 for tally in tallies)
    assert 0 < errors < 100
    page.write_text("What was found.\n\n## Counts\n\nOld counts.\n")
    write_counts(page, kept)
    said = page.read_text()
    assert said.startswith(f"What was found.\n\n## Counts\n\n{device_name(Resources())}, {os.cpu_count()} cores.\n")
    assert "Old counts" not in said
    assert f"\n| bits | a fault | {1000 + errors:,} | 1,000 | 0 | 900 | {100 + errors} |\n" in said
    assert f"\n| all | all | {1000 + errors:,} | 1,000 | 0 | 900 | {100 + errors} |\n" in said
    assert f"\n| bits | {datetime.now(UTC):%Y-%m-}" in said
    assert f"`{commit()[:10]}" in said
    assert "files" not in said  # it has injected nothing
    assert platform.node() not in said
