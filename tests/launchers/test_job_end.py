"""The end of a job's script on a node whose Python judges nothing. The shell is real, SLURM and Python are made up."""

import subprocess

import pytest

from launchers.command.options import GridOptions
from launchers.core.plan import make_plan
from launchers.slurm import site_job
from launchers.slurm import submit as cluster
from launchers.slurm.lost_starts import LostStart, read_starts
from suite.papers import get_suite
from suite.spec.resources import Resources

SUITE = get_suite("sample_efficiency")
JOB = {
    "SLURM_JOB_ID": "70", "SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "1", "SLURMD_NODENAME": "node1",
    "SLURM_JOB_PARTITION": "batch",
}  # fmt: skip
RUNNING = "JobState=RUNNING Restarts=0 ExcNodeList=node9 X=1"
MOVED = ["requeue 70_1", "update JobId=70_1 ExcNodeList=node9,node1"]


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Runs a job's script beside a Python that does as told; returns its status, SLURM's calls, and the lost starts."""
    tools, store = tmp_path / "bin", tmp_path / 'a "store"'
    tools.mkdir()

    def put(name, text):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)

    put("srun", "echo 'srun: error: \"Illegal\\' >&2; exit 132")
    put("sinfo", "printf 'node1\\nnode2\\n'")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(site_job, "PYTHON", str(tools / "python"))
    plan = make_plan(SUITE.profile("smoke").experiments()[:2], store, Resources())
    submitter = cluster.Submitter(plan, SUITE, GridOptions(suite=SUITE.name, profile="smoke", runs=store))
    folder = store / "slurm" / submitter.submission.name
    folder.mkdir(parents=True)
    (folder / "70_1_0_log.out").touch()

    def job(python, shown=RUNNING, restarts=0):
        put("python", python.replace("FOLDER", f"'{folder}'"))
        put("scontrol", f'[ $1 = show ] || echo "$*" >> {tmp_path}/calls; case $2 in job) echo "{shown}";; '
            'hostnames) tr , "\\n" <<< $3;; esac')  # fmt: skip
        (tmp_path / "calls").write_text("")
        with (folder / "70_1_0_log.out").open("ab") as log:
            done = subprocess.run(
                ["bash", "-c", submitter.script()], stdout=log, stderr=log, check=False,
                env=JOB | {"PATH": f"{tools}:/usr/bin:/bin", "SLURM_RESTART_COUNT": str(restarts)},
            )  # fmt: skip
        return done.returncode, (tmp_path / "calls").read_text().splitlines(), read_starts(folder)

    job.folder = folder
    return job


@pytest.mark.parametrize(("python", "status"), [("exit 0", 0), ("kill -ILL $$", 132), ("exit 1", 1), ("exit 127", 127)])
def test_a_node_whose_python_judges_nothing_is_named_and_left_out_whatever_it_ends_with(job, python, status):
    ended, calls, (start,) = job(python)
    assert ended == (status or 1)
    assert calls == MOVED
    log = str(job.folder / "70_1_0_log.out")
    begin = f"its Python ended with status {status}: srun: error: Illegal"
    assert start.reason.replace(" ", "").startswith(begin.replace(" ", ""))
    assert start == LostStart(kind="node", job="70_1", restarts=0, task=1, node="node1", reason=start.reason, log=log)


def test_a_job_that_no_node_could_begin_is_given_up_at_its_third_start(job):
    found = [job("exit 0", RUNNING.replace("=0", f"={restarts}"), restarts)[1] for restarts in range(3)]
    assert found == [MOVED, MOVED, []]


@pytest.mark.parametrize("status", [0, 1, 130])
def test_what_python_has_judged_stands(job, status):
    assert job(f"touch FOLDER/70.judged; exit {status}") == (status, [], [])
    assert not (job.folder / "70.judged").exists()


@pytest.mark.parametrize(
    "shown", ["JobState=CANCELLED Restarts=0 ", "JobState=RUNNING Restarts=1 ", RUNNING.replace("node9", "node2")]
)
def test_a_job_that_was_ended_or_requeued_or_has_no_node_left_is_not_put_back(job, shown):
    assert job("exit 0", shown)[1] == []


def test_a_submission_that_was_called_off_does_not_come_back(job):
    (job.folder / "cancelled").touch()
    assert job("exit 0")[1:] == ([], [])
