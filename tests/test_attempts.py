"""The lines that its attempts leave tell what a run has cost."""

import os

import pytest

from suite.store import attempts
from suite.store.attempts import device_hours, num_requeues, read_attempts, record_end, record_start
from suite.store.heartbeat import Heartbeat
from suite.store.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path):
    return RunDirectory(tmp_path)


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that attempts see."""

    def set_to(seconds):
        monkeypatch.setattr(attempts.time, "time", lambda: seconds)

    return set_to


def test_hours_add_up_over_attempts_and_ranks(run, clock):
    for start, end in ((0, 1800), (7200, 9000)):
        clock(start)
        record_start(run, num_ranks=4)
        clock(end)
        record_end(run, "interrupted", "preempted")
    assert device_hours(read_attempts(run)) == 4.0
    assert [attempt.why for attempt in read_attempts(run)] == ["preempted", "preempted"]


def test_an_attempt_that_was_killed_lasted_until_the_last_sign_of_life(run, clock):
    clock(1000)
    record_start(run, num_ranks=1)
    run.metrics_path.write_text("{}\n")
    os.utime(run.metrics_path, (1600, 1600))
    assert read_attempts(run)[0].seconds == 600
    assert read_attempts(run)[0].end is None
    clock(5000)
    record_start(run, num_ranks=1)
    assert [attempt.end for attempt in read_attempts(run)] == ["lost", None]
    assert read_attempts(run)[0].seconds == 600


def test_a_copied_store_counts_no_hours_that_nobody_trained(run, clock):
    clock(1000)
    record_start(run, num_ranks=1)
    run.append_metrics({"step": 1})
    clock(1600)
    Heartbeat(run)
    for path in (run.metrics_path, run.heartbeat_path):
        os.utime(path, (600_000, 600_000))
    assert read_attempts(run)[0].seconds == 600


def test_requeues_are_counted_by_job(run, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    for job, restarts in ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1)):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(job))
        monkeypatch.setenv("SLURM_RESTART_COUNT", str(restarts))
        record_start(run, num_ranks=1)
    assert num_requeues(read_attempts(run)) == 3
    assert read_attempts(run)[-1].job == "7_2"


@pytest.mark.parametrize(
    "line", [b"null", b"7", b"\xff", b"[" * 10_000, b'{"started_at": NaN}', b'{"started_at": 1e999}']
)
def test_a_damaged_line_costs_a_count_and_no_more(run, line):
    record_start(run, num_ranks=1)
    with run.attempts_path.open("ab") as file:
        file.write(line + b"\n")
    record_end(run, "finished")
    assert [attempt.end for attempt in read_attempts(run)] == ["finished"]


def test_a_half_written_line_costs_a_count_and_no_more(run):
    record_start(run, num_ranks=1)
    record_end(run, "finished")
    with run.attempts_path.open("a") as file:
        file.write('{"started_at": 12')
    assert [attempt.end for attempt in read_attempts(run)] == ["finished"]
