"""``--site-check`` in an allocation, whose srun is made up, and what it finds wrong."""

import os
import time

import filelock
import pytest

from launchers.grid import main
from launchers.slurm import node_check
from suite.base.exit_codes import Exit


@pytest.fixture
def allocation(tmp_path, monkeypatch):
    """An allocation of one node, where srun begins one process."""
    (tmp_path / "bin").mkdir()
    srun = tmp_path / "bin/srun"
    srun.write_text('#!/bin/bash\nwhile [[ "$1" == -* || "$1" == *_log.out ]]; do shift; done; exec "$@"\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    for key, value in {
        "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "1",
        "SLURM_NNODES": "1", "SLURM_JOB_NODELIST": "node1", "SLURMD_NODENAME": "node1",
    }.items():  # fmt: skip
        monkeypatch.setenv(key, value)


@pytest.mark.usefixtures("allocation")
def test_an_allocation_reports_what_a_run_would_find_with_a_cure_for_each_no(tmp_path, capsys):
    options = ["--site-check", "--runs", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "nothing")]
    assert main([*options, "--gpus-per-node", "h100:2"]) == Exit.FAILED
    said = " ".join(capsys.readouterr().out.split())
    for words in ("store node1", "hold between", "s from the submitting", "torch sees 0 of", "no: ask for GPUs"):
        assert words in said
    assert "2 to cure" in said  # the GPUs, and the images


def test_a_clock_that_is_an_hour_off_is_a_no(tmp_path, monkeypatch):
    monkeypatch.setattr(node_check.time, "sleep", lambda seconds: None)
    (tmp_path / "clock").write_text(str(time.time() - 3600))
    assert node_check._clock(tmp_path) == ("+3,600 s from the submitting host's", False)


def test_a_lock_that_two_hosts_get_is_a_no(tmp_path):
    assert not node_check._locks(tmp_path)[1]
    with filelock.FileLock(tmp_path / "lock"):
        assert node_check._locks(tmp_path) == ("hold between the hosts", True)


def test_where_there_is_no_slurm_the_check_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--site-check", "--runs", str(tmp_path)]) == Exit.MISUSE
    assert "sbatch, squeue, srun not found on PATH" in capsys.readouterr().err
