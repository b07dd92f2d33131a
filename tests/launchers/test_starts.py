"""Starts of jobs that began nothing: whose fault that is, and which nodes the next start avoids. SLURM is made up."""

import os
import time

import pytest

from launchers.core.plan import Job
from launchers.slurm import requeue as ending
from launchers.slurm.grid_status import JobStatus
from launchers.slurm.job import _write_to_log, run_task
from launchers.slurm.lost_starts import judge_start, note_start, read_starts
from launchers.slurm.status_table import find_troubles
from launchers.slurm.submission_record import Submission, cancel_mark, submissions_folder, write_submission
from suite.base.errors import RunError
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources
from suite.store.attempts import record_start
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status

NAME = "s-smoke-5f"


@pytest.fixture
def submission(graph):
    """A submission of two jobs."""
    tasks = ((graph["first"],), (graph["second"],))
    return Submission(
        name=NAME, suite="s", profile="smoke", num_seeds=1, time_min=60, resources=Resources(), tasks=tasks
    )


@pytest.fixture
def store(tmp_path, submission):
    """A store with the submission."""
    write_submission(tmp_path, submission)
    return tmp_path


@pytest.fixture
def chained(store, submission):
    """The same as the first of three arrays whose jobs may not requeue themselves; later ones wait as 71 and 72."""
    folder = submissions_folder(store) / NAME
    text = submission.model_copy(update={"requeue": False, "chain": 3}).model_dump_json()
    (folder / "submission.json").write_text(text)


@pytest.fixture
def end(store, monkeypatch):
    """Ends the start of a job on a node; returns its exit status and the words that SLURM was given."""
    tools, calls = store / "bin", store / "calls"
    tools.mkdir()

    def put(name, text):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)

    state = f"cat {store}/shown"
    (store / "shown").write_text("JobState=RUNNING Restarts=0 ExcNodeList=(null)\n")
    show = f'[ "$1 $2" = "show job" ] && {state}; [ "$1 $2" = "show hostnames" ] && echo $3 | tr , "\\n"; exit 0'
    put("scontrol", f'[ "$1" != show ] && echo "$*" >> {calls}; {show}')
    put("squeue", f"echo '70_1|(null)|{NAME}.0'; echo '70_[4-9%2]|node9|{NAME}.0'; echo '71_[0-3]|(null)|other-5f.0'")
    put("sinfo", "printf 'node1\\nnode2\\nnode3\\nnode4\\n'")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(ending.signal, "signal", lambda *_: None)

    def end(node, task=0, restarts=0, status=1):
        for key, value in {
            "SLURM_JOB_ID": 70 + task, "SLURM_ARRAY_JOB_ID": 70, "SLURM_ARRAY_TASK_ID": task, "SLURM_PROCID": 0,
            "SLURM_RESTART_COUNT": restarts, "SLURMD_NODENAME": node, "SLURM_JOB_NUM_NODES": 1,
        }.items():  # fmt: skip
            monkeypatch.setenv(key, str(value))
        calls.write_text("")
        return ending.end_task(store, NAME, 0, status), calls.read_text().splitlines()

    return end


def test_a_node_that_ends_a_job_before_its_run_starts_is_left_out_of_that_job_s_next_start(end, store):
    assert end("node1") == (Exit.INTERRUPTED, ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1"])
    (start,) = read_starts(submissions_folder(store) / NAME)
    assert (start.kind, start.node, start.job, start.task) == ("node", "node1", "70_0", 0)
    assert end("node2", restarts=1)[1] == ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1,node2"]
    assert end("node3", restarts=2) == (Exit.FAILED, [])  # it is the project, not the nodes


def test_a_node_that_could_not_begin_two_jobs_is_left_out_of_the_whole_submission(end):
    end("node1", task=0)
    _, calls = end("node1", task=1)
    assert calls == [
        "requeue 70_1",
        "update JobId=70_1 ExcNodeList=node1",
        "update JobId=70_1 ExcNodeList=node1",
        "update JobId=70_[4-9] ExcNodeList=node9,node1",
    ]


def test_where_no_node_is_left_the_job_fails_instead_of_waiting_for_ever(end, store):
    for node in ("node1", "node2", "node3"):
        note_start("node", submissions_folder(store) / NAME, 0, "ImportError: no torch")
        end(node)
    (store / "bin" / "sinfo").write_text("#!/bin/sh\necho node4\n")
    assert end("node4", task=1) == (Exit.FAILED, [])


def test_a_start_that_began_its_run_is_none_of_the_node_s(end, store, graph, monkeypatch):
    end("node1", task=1)
    run = RunDirectory.of(store, graph["first"])
    run.create(graph["first"])
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    record_start(run, num_ranks=1)
    assert end("node1") == (Exit.INTERRUPTED, ["requeue 70_0"])


def test_a_run_that_another_process_holds_uses_up_no_start(end, store, graph):
    run = RunDirectory.of(store, graph["first"])
    run.create(graph["first"])
    with run.claim():
        for restarts in range(6):
            assert end("node1", restarts=restarts, status=0) == (
                Exit.INTERRUPTED,
                ["requeue 70_0", "update JobId=70_0 StartTime=now+60"],
            )
    assert end("node1", restarts=6)[0] == Exit.INTERRUPTED
    assert {start.kind for start in read_starts(submissions_folder(store) / NAME)} == {"held", "node"}


@pytest.mark.parametrize("status", [Exit.INTERRUPTED, 143, 140])  # by SIGTERM or SIGUSR2, before Python handles them
def test_a_job_that_was_stopped_as_it_started_blames_no_node(end, store, status):
    log = submissions_folder(store) / NAME / "70_0_0_log.out"
    log.write_text(
        f"srun: error: node1: task 0: Terminated\nsrun: error: node1: task 1: Exited with exit code {status:d}"
    )
    for restarts in range(5):
        assert end("node1", restarts=restarts, status=status) == (Exit.INTERRUPTED, ["requeue 70_0"])


def test_a_start_that_hangs_until_its_time_limit_is_late_and_ends_the_job_at_the_third(end, store, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 170))
    assert [end("node1", restarts=n, status=140)[0] for n in range(3)] == [130, 130, Exit.FAILED]
    assert {start.kind for start in read_starts(submissions_folder(store) / NAME)} == {"late"}


@pytest.mark.parametrize("how", ["Exited with exit code 1", "Segmentation fault (core dumped)"])
def test_processes_that_srun_stops_as_one_of_them_failed_were_not_stopped_by_others(end, store, how):
    said = f"srun: error: node1: task 1: {how}\nsrun: error: node1: task 0: Terminated\n"
    (submissions_folder(store) / NAME / "70_0_0_log.out").write_text(f"start 0 on node1\n{said}")
    assert end("node1", status=143)[1] == ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1"]


def test_what_outlived_its_node_s_slurmd_does_not_requeue_the_start_after_it(end, store):
    (store / "shown").write_text("JobState=RUNNING Restarts=1 ExcNodeList=(null)\n")
    assert end("node1", restarts=0) == (Exit.INTERRUPTED, [])
    assert end("node2", restarts=1)[1][0] == "requeue 70_0"


def put_squeue(store):
    lines = f"echo '70|R|{NAME}.0'; echo '71|PD|{NAME}.0_2'; echo '72|PD|{NAME}.0_3'; echo '73|PD|{NAME}.1_2'"
    (store / "bin/squeue").write_text(f"#!/bin/sh\n{lines}\n")
    (store / "bin/scancel").write_text(f'#!/bin/sh\necho "scancel $*" >> {store}/calls\n')
    (store / "bin/scancel").chmod(0o755)


@pytest.mark.usefixtures("chained")
def test_a_job_that_may_not_requeue_itself_leaves_its_runs_to_the_next_of_its_chain(end, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_JOB_NAME", f"{NAME}.0")
    assert end("node1", status=Exit.INTERRUPTED) == (Exit.INTERRUPTED, [])
    assert "1 of 1 runs are open: the next job of the chain goes on" in capsys.readouterr().out
    monkeypatch.setenv("SLURM_JOB_NAME", f"{NAME}.0_3")
    end("node1", status=Exit.INTERRUPTED)
    assert "the same command submits them again" in capsys.readouterr().out


@pytest.mark.usefixtures("chained")
def test_a_task_that_is_done_is_called_off_in_the_rest_of_its_chain(end, store, graph, finish):
    finish(graph["second"])
    put_squeue(store)
    status, calls = end("node1", task=1, status=0)
    assert (status, [sorted(call.split()) for call in calls]) == (Exit.DONE, [["71_1", "72_1", "scancel"]])


@pytest.mark.usefixtures("chained")
def test_a_job_of_a_chain_whose_runs_are_done_loads_nothing(store, graph, finish, monkeypatch):
    finish(graph["first"])
    monkeypatch.setitem(__import__("sys").modules, "suite.training.loop", None)
    assert run_task(store, NAME, 0) == Exit.DONE


def test_a_requeue_that_the_cluster_forbids_is_said_with_the_cure_and_not_tried_again(end, store, capsys):
    refuse = '[ "$1" = requeue ] && { echo "Requested operation is presently disabled" >&2; exit 1; }'
    tool = store / "bin/scontrol"
    tool.write_text(tool.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{refuse}\n"))
    assert end("node1", status=Exit.INTERRUPTED) == (Exit.INTERRUPTED, [])
    said = capsys.readouterr().err
    assert (
        "lets no job requeue itself: the next job of the chain goes on, or the same command submits what is left"
        in said
    )
    assert "requeue = false and chain in site.toml" in said


@pytest.mark.parametrize("status", [0, 3, 132])
def test_a_start_that_leaves_nothing_is_the_node_s_whatever_its_processes_ended_with(end, store, status):
    assert end("node1", status=status)[1] == ["requeue 70_0", "update JobId=70_0 ExcNodeList=node1"]
    assert [start.kind for start in read_starts(submissions_folder(store) / NAME)] == ["node"]


def test_a_run_that_was_held_and_is_free_again_is_no_fault_of_the_node(end, store, monkeypatch):
    folder = submissions_folder(store) / NAME
    monkeypatch.setattr(ending, "judge_start", lambda *given: (note_start("held", folder, 0), judge_start(*given))[1])
    assert end("node1", status=0)[1] == ["requeue 70_0", "update JobId=70_0 StartTime=now+60"]


def test_a_lost_start_says_all_that_srun_said_in_it_also_on_the_console(end, store, graph):
    folder = submissions_folder(store) / NAME
    log = folder / "70_0_0_log.out"
    log.write_text(
        "start 0 on node9\nsrun: error: old\nstart 1 on node1\nsrun: error: no step\nsrun: error: too many\n"
    )
    end("node1", restarts=1)
    (start,) = read_starts(folder)
    assert start.reason == "its processes ended with status 1: srun: error: no step; srun: error: too many"
    requeued = JobStatus(Job(graph["first"], RunDirectory.of(store, graph["first"]), Resources()), "requeued")
    said = find_troubles(store, [requeued])
    assert said == [f"node1 lost a start: {start.reason}; see {log}"]


def test_a_job_of_a_submission_that_was_called_off_begins_nothing(store, graph):
    cancel_mark(store, NAME).touch()
    assert run_task(store, NAME, 0) == Exit.INTERRUPTED
    assert not RunDirectory.of(store, graph["first"]).path.exists()


def test_a_process_that_cannot_import_what_it_needs_names_its_node(store, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "node3")
    monkeypatch.setitem(__import__("sys").modules, "suite.training.loop", None)  # as where torch is missing
    with pytest.raises(ImportError):
        run_task(store, NAME, 0)
    (start,) = read_starts(submissions_folder(store) / NAME)
    assert start.node == "node3"
    assert start.reason.startswith("ModuleNotFoundError")


@pytest.mark.parametrize("hours", [1, -1])
def test_a_node_whose_clock_is_an_hour_off_is_named_with_the_cure_before_its_job_trains(store, monkeypatch, hours):
    monkeypatch.setenv("SLURMD_NODENAME", "node3")
    monkeypatch.setenv("SLURM_JOB_START_TIME", str(int(time.time()) - 3600 * hours))
    with pytest.raises(RunError, match="ask the site to run NTP"):
        run_task(store, NAME, 0)
    (start,) = read_starts(submissions_folder(store) / NAME)
    assert start.node == "node3"
    assert f"its clock is {'+' if hours > 0 else '-'}3," in start.reason


@pytest.mark.parametrize(
    ("put", "found"), [(os.mkfifo, "it is a FIFO"), (lambda path: path.symlink_to("/dev/null"), "it is a link")]
)
def test_a_log_that_is_no_file_fails_its_run_instead_of_keeping_the_job_waiting(store, graph, put, found):
    run = RunDirectory.of(store, graph["first"])
    run.create(graph["first"])
    put(run.log_path)
    with pytest.raises(RunError, match="cannot open its log"):
        _write_to_log(run)
    assert found in run.read_failure().reason
    assert read_run_status(run, {}).state == "failed"
