"""A run's signs of life, and how a watch beside it tells a hang from slow work."""

import os
import time
from typing import get_args

import pytest

from suite.store import heartbeat
from suite.store.heartbeat import Beat, Heartbeat, Phase, Watchdog, find_stall, read_beat
from suite.store.run_directory import RunDirectory


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets forward; a watch looks every second meanwhile."""

    class Clock:
        now = 1000.0

        def pass_by(self, seconds, watch=None):
            for _ in range(int(seconds)):
                self.now += 1
                if watch is not None and (hang := watch.find_hang()):
                    return hang
            self.now += seconds % 1
            return ""

    clock = Clock()
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def run(tmp_path):
    return RunDirectory(tmp_path)


def begin(run, clock, step_s=1.0, num_steps=5):
    """Train a few steps."""
    watch, heart = Watchdog(run), Heartbeat(run)
    for step in range(num_steps):
        clock.pass_by(step_s, watch)
        heart.beat(step + 1)
    return watch, heart


@pytest.mark.parametrize(
    ("step_s", "patience_s", "slowest"),
    [(0.012, 60, "0.012 s"), (1.0, 60, "1 s"), (5.0, 60, "5 s"), (20.0, 200, "20 s"), (150.0, 1500, "150 s")],
)
def test_a_run_hangs_once_it_is_silent_for_ten_times_its_slowest_step_and_a_minute(
    run, clock, step_s, patience_s, slowest
):
    watch, _ = begin(run, clock, step_s)
    assert clock.pass_by(patience_s, watch) == ""
    assert clock.pass_by(2, watch).startswith(f"no step for {patience_s + 1} s; the slowest took {slowest}")


def test_a_run_that_stops_after_its_first_step_hangs_too(run, clock):
    watch, heart = Watchdog(run), Heartbeat(run)
    clock.pass_by(500, watch)  # start-up
    heart.begin()
    clock.pass_by(3, watch)
    heart.beat(1)
    assert clock.pass_by(60, watch) == ""
    assert "no step for 61 s; the slowest took 3 s" in clock.pass_by(2, watch)


def test_an_evaluation_is_no_slow_step_and_a_long_first_one_no_hang(run, clock):
    watch, heart = begin(run, clock)
    with heart.during("evaluation"):
        assert clock.pass_by(1000, watch) == ""
    assert read_beat(run).slowest_s["training"] == 1.0
    clock.pass_by(1, watch)
    heart.beat(6)
    assert read_beat(run).slowest_s["training"] == 1.0
    assert "no step for 61 s" in clock.pass_by(100, watch)


def test_a_checkpoint_that_takes_ten_times_as_long_as_the_slowest_hangs(run, clock):
    watch, heart = begin(run, clock)
    for seconds in (3, 10):
        with heart.during("checkpoint"):
            clock.pass_by(seconds, watch)
    with heart.during("checkpoint"):
        assert clock.pass_by(100, watch) == ""
        assert "no step for 101 s, in a checkpoint; the slowest took 10 s" in clock.pass_by(2, watch)


def test_what_an_earlier_attempt_left_says_nothing_of_the_next_one_s_start(run, clock):
    begin(run, clock)
    watch = Watchdog(run)
    assert clock.pass_by(1800, watch) == ""
    assert "no step for 1801 s, at its start" in clock.pass_by(2, watch)


def test_a_watch_that_was_stopped_with_its_run_takes_that_for_no_silence(run, clock):
    watch, heart = begin(run, clock)
    clock.now += 100_000  # a suspended machine
    assert watch.find_hang() == ""
    heart.beat(6)
    assert clock.pass_by(60, watch) == ""


def test_steps_are_written_once_a_second_and_other_ranks_write_nothing(run, clock, tmp_path):
    heart = Heartbeat(run)
    numbers = set()
    for step in range(100):
        clock.now += 0.1
        heart.beat(step)
        numbers.add(read_beat(run).number)
    assert 9 <= len(numbers) <= 11
    run.heartbeat_path.unlink()
    Heartbeat(None).beat(1)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_beat_fits_its_file():
    slowest_s = dict.fromkeys(get_args(Phase), 1 / 3e9)
    beat = Beat(number=10**9, pid=2**22, phase="evaluation", step=10**9, slowest_s=slowest_s, at=time.time() + 1 / 3)
    assert len(beat.model_dump_json()) <= heartbeat._SIZE


@pytest.mark.parametrize("content", [b"", b"null", b"\xff\xfe", b"{}", b"{" * 2000])
def test_a_heartbeat_that_cannot_be_read_is_none(run, content):
    run.heartbeat_path.write_bytes(content)
    assert read_beat(run) is None
    assert find_stall(run) == ""


def test_a_named_pipe_in_its_place_holds_nobody_up(run):
    os.mkfifo(run.heartbeat_path)
    assert read_beat(run) is None


def test_a_status_tells_a_silence_by_the_file_s_date(run, clock):
    begin(run, clock)
    assert find_stall(run) == ""
    then = run.heartbeat_path.stat().st_mtime - 40
    os.utime(run.heartbeat_path, (then, then))
    assert find_stall(run).startswith("no step for 40 s")


def test_a_status_tells_of_a_first_checkpoint_without_end_long_before_it_is_ended(run, clock):
    _, heart = begin(run, clock)
    with heart.during("checkpoint"):
        then = run.heartbeat_path.stat().st_mtime - 70
        os.utime(run.heartbeat_path, (then, then))
        assert find_stall(run) == "no step for 70 s, in a checkpoint"
