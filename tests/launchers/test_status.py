"""Where a run stands, from its files and what SLURM says of its job."""

import io
import json
import os
import platform
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from launchers.core.plan import Job
from launchers.slurm import queries as slurm
from launchers.slurm.grid_costs import hours_needed
from launchers.slurm.grid_status import JobStatus, read_status
from launchers.slurm.lost_starts import note_start
from launchers.slurm.queries import EndedJob, QueuedJob
from launchers.slurm.status_table import find_troubles, render_status
from launchers.slurm.submission_record import Submission, cancel_mark, write_submission
from suite.base.errors import RecordError, RunError
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.attempts import record_end, record_fallback, record_start
from suite.store.heartbeat import Heartbeat
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory

PROFILE = get_suite("sample_efficiency").profile("smoke")
EXPERIMENTS = PROFILE.experiments()[:2]
NAME = "sample_efficiency-smoke-5f00000000000"


@pytest.fixture
def look(tmp_path, monkeypatch):
    """A store with one submission of two runs in one job; returns what --status says of the first."""
    submission = Submission(
        name=NAME, suite="sample_efficiency", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
        tasks=(tuple(EXPERIMENTS),),
    )  # fmt: skip
    write_submission(tmp_path, submission)

    def look(*, queued=None, ended=None):
        monkeypatch.setattr(slurm, "read_queue", lambda users: [QueuedJob("9_0", NAME, 0, *queued)] if queued else [])
        last = {(NAME, 0): EndedJob("9_0", ended, "node2")} if ended else {}
        monkeypatch.setattr(slurm, "read_ended", lambda names, since, users: last)
        jobs = [Job(e, RunDirectory.of(tmp_path, e), Resources()) for e in EXPERIMENTS]
        return read_status(jobs, tmp_path)[0]

    return look


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The first run, begun in the submission's job."""
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "9")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    found = RunDirectory.of(tmp_path, EXPERIMENTS[0])
    found.create(EXPERIMENTS[0])
    record_start(found, num_ranks=1)
    return found


def render(*found):
    console = Console(width=160, file=io.StringIO())
    console.print(render_status(found, PROFILE))
    return console.file.getvalue()


RUNNING = ("R", "None", "node3", 0)
WAITING = ("PD", "Resources", "", 0)
REQUEUED = ("PD", "BeginTime", "", 2)


def test_a_job_that_waits_is_pending_with_slurm_s_reason(look):
    found = look(queued=WAITING)
    assert (found.state, found.detail) == ("pending", "Resources")


def test_a_run_is_running_when_it_is_its_turn_in_the_job(look, run):
    run.append_metrics({"step": 20, "num_steps": 60, "images_per_s": 64.0})
    found = look(queued=RUNNING)
    assert (found.state, found.node, found.steps) == ("running", "node3", "20 of 60")
    assert found.remaining_s == 40 * 32 / 64


def test_a_run_without_a_sign_of_life_says_so_and_shows_no_rate(look, run):
    run.append_metrics({"step": 20, "num_steps": 40_020, "images_per_s": 64_000.0})
    heart = Heartbeat(run)
    heart.beat(20)
    heart.end()
    shown = render(look(queued=RUNNING))
    assert "64,000" in shown
    assert "0:00:20" in shown
    then = run.heartbeat_path.stat().st_mtime - 330
    os.utime(run.heartbeat_path, (then, then))
    shown = render(look(queued=RUNNING))
    assert "no step for 330 s" in shown
    assert "64,000" not in shown
    assert "0:00:20" not in shown


@pytest.mark.parametrize(
    "line",
    ["null", "7", '"x"', "[[1, 2, 3]]", '{"step": null, "num_steps": 60}', '{"step": "9", "images_per_s": "fast"}',
     '{"images_per_s": NaN}', '{"num_steps": true}', "{" * 100, "\xff"],
)  # fmt: skip
def test_a_line_of_metrics_that_is_no_line_of_ours_hides_no_run(look, run, line):
    run.metrics_path.write_text(f"{line}\n")
    assert "running" in render(look(queued=RUNNING))


def test_bytes_that_are_no_text_among_the_attempts_cost_a_count_not_the_status(look, run):
    with run.attempts_path.open("ab") as file:
        file.write(b"\xff\xfe\nnull\n[1]\n")
    assert look(queued=RUNNING).state == "running"


def test_a_checkpoint_that_was_passed_over_is_told(look, run):
    record_fallback(run, from_step=0, num_unusable=2)
    assert "2 checkpoints could not be gone on from: it went on from its start" in render(look(queued=RUNNING))


@pytest.mark.parametrize(
    "change",
    [{"ids": [["a"], ["b"]]}, {"ids": [["a"]]}, {"name": "../../elsewhere-5f"}, {"num_seeds": 10**30}],
    ids=["more tasks", "fewer runs", "another folder", "a number out of range"],
)
def test_a_submission_that_does_not_fit_itself_is_told_in_a_line(look, run, tmp_path, change):
    path = tmp_path / "slurm" / NAME / "submission.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RecordError, match=r"cannot read .*submission\.json: .*submit again"):
        look()


def test_a_void_result_is_told_with_its_reason(look, finish):
    finish(EXPERIMENTS[0], protocol_version=0)
    found = look()
    assert (found.state, found.top1_percent) == ("void", None)
    assert "made under protocol 0" in found.detail
    finish(EXPERIMENTS[0])
    assert look().state == "done"


def test_a_later_run_of_a_running_job_waits(look):
    assert look(queued=RUNNING).state == "pending"


def test_a_requeued_job_has_not_failed_though_its_last_attempt_was_killed(look, run):
    record_end(run, "interrupted", "preempted")
    run.write_failure(Failure(kind="killed", reason="a rank is gone", log_path="log.txt"))
    found = look(queued=REQUEUED, ended="NODE_FAIL")
    assert (found.state, found.detail) == ("requeued", "preempted")


def test_what_has_left_the_queue_is_told_from_its_files_and_accounting(look, run, tmp_path):
    assert look(ended="OUT_OF_MEMORY").state == "interrupted"
    assert "OUT_OF_MEMORY" in look(ended="OUT_OF_MEMORY").detail
    assert look(ended="CANCELLED").state == "cancelled"
    cancel_mark(tmp_path, NAME).touch()  # accounting may be late, or not there
    assert look().state == "cancelled"
    run.write_failure(Failure(kind="error", reason="the loss is nan", log_path="log.txt"))
    assert (look().state, look().detail) == ("failed", "the loss is nan; see log.txt")


@pytest.mark.parametrize(
    "text", ["x\n" * 9_000, "\x1b[2J\r" * 9_000, "word " * 9_000, "\t" * 9_000, "\x85\u202e" * 9_000]
)
def test_an_error_takes_five_lines_at_most_and_steers_no_terminal(look, run, text):
    run.write_failure(Failure(kind="error", reason=text, log_path="log.txt"))
    shown, usual = render(look()), render(look(queued=WAITING))
    assert shown.count("\n") <= usual.count("\n") + 4
    assert "log.txt" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)


def test_hours_needed_are_by_rate_where_there_is_one_and_by_flops_before(look, run):
    assert 0 < hours_needed([look(queued=WAITING)], PROFILE) < 0.01
    run.append_metrics({"step": 20, "num_steps": 60, "images_per_s": 64.0})
    assert hours_needed([look(queued=RUNNING)], PROFILE) == pytest.approx(20 / 3600)


def test_a_controller_that_does_not_answer_is_no_verdict_on_the_runs(look, monkeypatch, tmp_path):
    def silent(users):
        raise RunError("squeue did not answer: it restarts. The jobs go on; try again.")

    monkeypatch.setattr(slurm, "read_queue", silent)
    with pytest.raises(RunError, match="The jobs go on"):
        read_status([], tmp_path)


def test_the_table_counts_all_and_sums_hours(look, run):
    text = render(look(queued=RUNNING), look(ended="CANCELLED"))
    assert "2 runs: 1 running, 1 cancelled" in text
    assert "rank-hours: 0 used" in text


def states(tmp_path, graph):
    found = read_status([Job(e, RunDirectory.of(tmp_path, e), Resources()) for e in graph.values()], tmp_path)
    return dict(zip(graph, found, strict=True))


@pytest.fixture
def in_queue(tmp_path, monkeypatch, graph):
    """Puts the graph's runs, one a job, into SLURM's queue; called again, only those named are left in it."""
    names = list(graph)
    tasks = tuple((experiment,) for experiment in graph.values())
    submission = Submission(
        name=NAME, suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(), tasks=tasks
    )
    write_submission(tmp_path, submission)
    monkeypatch.setattr(slurm, "read_ended", lambda names, since, users: {})

    def put(*left):
        jobs = [QueuedJob(f"{i}_0", NAME, i, "PD", "Dependency", "", 0) for i, name in enumerate(names) if name in left]
        monkeypatch.setattr(slurm, "read_queue", lambda users: jobs)

    put(*names)
    return put


def test_a_run_in_the_queue_waits_for_its_parent_and_says_for_which(tmp_path, graph, in_queue, finish):
    found = states(tmp_path, graph)
    assert (found["first"].state, found["tuned"].state) == ("pending", "waiting")
    assert found["tuned"].detail == f"for {graph['first'].id} (pending)"
    assert all(status.goes_on for status in found.values())
    finish(graph["first"])
    assert states(tmp_path, graph)["tuned"].state == "pending"


def test_a_run_whose_parent_failed_says_so_and_is_waited_for_no_longer(tmp_path, graph, in_queue):
    in_queue("tuned", "mask_tuned")
    failure = Failure(kind="error", reason="the loss is nan", log_path="log.txt")
    RunDirectory.of(tmp_path, graph["first"]).create(graph["first"])
    RunDirectory.of(tmp_path, graph["first"]).write_failure(failure)
    found = states(tmp_path, graph)
    because = f"needs {graph['first'].id}, which failed: the loss is nan"
    assert (found["tuned"].state, found["tuned"].detail) == ("blocked", because)
    assert (found["mask_tuned"].state, found["mask_tuned"].goes_on) == ("blocked", False)


def test_a_run_that_left_the_queue_before_its_parent_was_done_is_not_waited_for(tmp_path, graph, in_queue):
    in_queue()
    found = states(tmp_path, graph)
    assert (found["first"].state, found["tuned"].state) == ("new", "waiting")
    assert not any(status.goes_on for status in found.values())


# -- why


def test_a_run_held_by_a_process_that_slurm_has_lost_says_where_it_is(look, run):
    with run.claim():
        found = look()
    assert (found.state, found.detail) == (
        "running",
        f"held by a process on {platform.node()} of job 9_0, which has left SLURM's queue",
    )


def test_a_job_that_ended_by_itself_says_why_in_slurm_s_words_and_its_log_s(look, run, tmp_path):
    log = tmp_path / "slurm" / NAME / "9_0_0_log.out"
    log.write_text("Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\nsrun: exit 1\n")
    said = look(ended="FAILED").detail
    assert (
        said == f"FAILED on node2; OSError: [Errno 28] No space left on device; see {log}; the same command resumes it"
    )
    log.unlink()
    assert look(ended="OUT_OF_MEMORY").detail.startswith("OUT_OF_MEMORY on node2 (out of memory; raise --mem-gb)")


def test_a_full_disk_is_named(look, run, tmp_path, monkeypatch):
    monkeypatch.setattr("launchers.slurm.grid_status.shutil.disk_usage", lambda path: SimpleNamespace(free=0))
    assert f"the disk of {tmp_path} is full" in look(ended="FAILED").detail


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit: a limit of the account, partition or QOS"),
        ("PartitionTimeLimit", "PartitionTimeLimit: --time-min is above the partition's limit"),
        ("(BadConstraints)", "(BadConstraints): no node fits, or all that do are left out"),
        ("Resources", "Resources"),
    ],
)
def test_a_job_that_waits_for_what_never_comes_says_so(look, reason, words):
    assert look(queued=("PD", reason, "", 0)).detail == words


def test_a_start_that_was_lost_names_its_node_and_log(look, run, tmp_path, monkeypatch):
    record_end(run, "interrupted", "preempted")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    monkeypatch.setenv("SLURMD_NODENAME", "node4")
    note_start("node", tmp_path / "slurm" / NAME, 0, "ImportError: no torch")
    log = tmp_path / "slurm" / NAME / "9_0_0_log.out"
    words = f"node4 ended job 9_0 before its run started: ImportError: no torch; see {log}"
    assert look(queued=REQUEUED).detail == words
    assert look(queued=("PD", "BeginTime", "", 3)).detail == "preempted"  # a later start began it


def test_a_node_at_less_than_half_the_others_pace_is_named(tmp_path):
    def running(node, rate):
        job = Job(EXPERIMENTS[0], RunDirectory.of(tmp_path, EXPERIMENTS[0]), Resources())
        metrics = {"step": 1, "num_steps": 2, "images_per_s": rate}
        return JobStatus(job, "running", node=node, metrics=metrics)

    even = [running("node1", 100.0), running("node2", 90.0), running("node3", 51.0)]
    assert find_troubles(tmp_path, even) == []
    slow = [*even, running("node4", 44.0)]
    assert find_troubles(tmp_path, slow) == ["node4 is slow: 44 images/s, where others reach 90"]
