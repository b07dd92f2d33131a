"""Ending a suite's jobs, and sharing a store with other users. SLURM is made up: a file holds its queue."""

import os
import threading
import time

import filelock
import pytest

from launchers.grid import main
from launchers.slurm import queries as slurm
from launchers.slurm import train_on_slurm as on_slurm
from launchers.slurm.submission_record import Submission, cancel_mark, submissions_folder, write_submission
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources

NAMES = ("sample_efficiency-smoke-5f00000000000", "sample_efficiency-smoke-5f00000000001")
COMMAND = ["--suite", "sample_efficiency", "--profile", "smoke"]


@pytest.fixture
def queue(tmp_path, monkeypatch, graph):
    """Two submissions of a job each, and a SLURM that has these and their leaderboards' jobs; returns what is left."""
    for name in NAMES:
        submission = Submission(
            name=name, suite="sample_efficiency", profile="smoke", num_seeds=1, time_min=60, resources=Resources(),
            tasks=((graph["first"],),),
        )  # fmt: skip
        write_submission(tmp_path, submission)
    tools, jobs = tmp_path / "bin", tmp_path / "jobs"
    tools.mkdir()
    jobs.write_text("".join(f"{n}0 {name}.0\n{n}1 {name}.leaderboard\n" for n, name in enumerate(NAMES, start=1)))
    wide = "".join(["%-255s"] * 7)
    ours = f'printf "{wide}" $id 0 $name PD None "" 0; echo'
    scripts = {
        "squeue": f'while read -r id name; do case "$*" in *array*) case $name in *.0) {ours};; esac;; '
        f'*) echo "$id|PD|$name";; esac; done < {jobs}',
        "scancel": f'for id in "$@"; do sed -i "/^$id /d" {jobs}; done',
        "sacct": "exit 0",
        "srun": "exit 0",
        "sbatch": "exit 1",
        "scontrol": f"cat {tmp_path}/config",
    }
    for name, text in scripts.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    (tmp_path / "config").write_text("PrivateData             = none\n")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(slurm, "_LOOK_S", 0)
    return lambda: jobs.read_text().split("\n")[:-1]


def marks(store):
    return [cancel_mark(store, name).exists() for name in NAMES]


def test_all_jobs_of_a_suite_are_cancelled_those_that_build_its_leaderboard_too(queue, tmp_path, capsys):
    assert main([*COMMAND, "--runs", str(tmp_path), "--cancel"]) == 0
    assert "cancelled 2 jobs" in capsys.readouterr().out
    assert queue() == []
    assert marks(tmp_path) == [True, True]


def test_the_lock_of_who_submits_is_readable_by_those_whom_the_umask_lets(queue, tmp_path):
    before = os.umask(0o077)
    try:
        main([*COMMAND, "--runs", str(tmp_path), "--cancel"])
    finally:
        os.umask(before)
    assert (submissions_folder(tmp_path) / "submit.lock").stat().st_mode & 0o777 == 0o600


def test_where_scancel_fails_nothing_is_called_cancelled(queue, tmp_path, monkeypatch, capsys):
    (tmp_path / "bin" / "scancel").write_text("#!/bin/sh\necho 'scancel: error: Access denied' >&2; exit 1\n")
    assert main([*COMMAND, "--runs", str(tmp_path), "--cancel"]) == Exit.FAILED
    assert "2 jobs are still in the queue: scancel failed: scancel: error: Access denied" in " ".join(
        capsys.readouterr().err.split()
    )
    assert marks(tmp_path) == [False, False]
    assert len(queue()) == 4


def test_a_cancel_waits_until_another_grid_has_submitted(queue, tmp_path, monkeypatch):
    cancelled = threading.Thread(target=main, args=[[*COMMAND, "--runs", str(tmp_path), "--cancel"]])
    monkeypatch.setattr("signal.signal", lambda *_: None)  # which only a main thread may call
    with filelock.FileLock(submissions_folder(tmp_path) / "submit.lock"):
        cancelled.start()
        time.sleep(2)
        assert len(queue()) == 4
        assert marks(tmp_path) == [False, False]
    cancelled.join(300)
    assert queue() == []


def test_the_jobs_of_all_who_submitted_to_a_store_are_looked_at(queue, tmp_path):
    os.chown(submissions_folder(tmp_path) / NAMES[0] / "submission.json", 12345, -1)
    calls = tmp_path / "calls"
    script = tmp_path / "bin" / "squeue"
    script.write_text(script.read_text().replace("\n", f'\necho "$*" >> {calls}\n', 1))
    main([*COMMAND, "--runs", str(tmp_path), "--status"])
    assert f"--user={os.getuid()},12345 " in calls.read_text()


def test_what_another_user_may_have_in_a_hidden_queue_is_not_submitted_again(queue, tmp_path, capsys):
    os.chown(submissions_folder(tmp_path) / NAMES[0] / "submission.json", 12345, -1)
    (tmp_path / "config").write_text("PrivateData             = accounts,jobs\n")
    (tmp_path / "jobs").write_text("")
    assert slurm.hides_jobs()
    assert main([*COMMAND, "--runs", str(tmp_path), "--cluster", "slurm"]) == Exit.FAILED
    assert "user 12345 has submitted runs of this grid" in " ".join(capsys.readouterr().err.split())


def test_a_leaderboard_s_job_that_is_refused_is_no_failure_of_the_runs(queue, tmp_path, capsys):
    (tmp_path / "jobs").write_text("")
    (tmp_path / "bin" / "sbatch").write_text(
        "#!/bin/bash\n[ $1 = --test-only ] && exit 0\n"
        "grep -q leaderboards.build $2 && { echo 'QOSMaxSubmitJobPerUserLimit' >&2; exit 1; }\n"
        "echo Submitted batch job 7\n"
    )
    assert main([*COMMAND, "--runs", str(tmp_path), "--cluster", "slurm", "--detach"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the leaderboard's job was refused" in said
    assert "QOSMaxSubmitJobPerUserLimit" in said


def test_nodes_that_a_controller_does_not_know_yet_are_waited_for(queue, tmp_path, monkeypatch):
    (tmp_path / "bin" / "sinfo").write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/known ] && echo idle || echo unk*\ntouch {tmp_path}/known\n"
    )
    (tmp_path / "bin" / "sinfo").chmod(0o755)
    (tmp_path / "bin" / "sbatch").write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/known ] || {{ echo 'node configuration is not available' >&2; exit 1; }}\n"
        "echo Submitted batch job 7\n"
    )
    (tmp_path / "jobs").write_text("")
    monkeypatch.setattr(slurm, "_NODES_LOOK_S", 0.01)
    monkeypatch.setattr(on_slurm, "_POLL_S", 0.01)
    assert main([*COMMAND, "--runs", str(tmp_path), "--cluster", "slurm", "--detach"]) == 0
