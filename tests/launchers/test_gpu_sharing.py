"""Runs share a GPU by NVIDIA's MPS, here a script that keeps to what NVIDIA documents of its control daemon."""

import os
import shutil
import stat
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from launchers import grid
from launchers.command.options import GridOptions
from launchers.local.gpu_sharing import SharedGpus
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.papers import get_suite

DAEMON = """#!/bin/sh
pipes=$CUDA_MPS_PIPE_DIRECTORY
if [ "$1" = -f ]; then
    if [ "$CUDA_VISIBLE_DEVICES" = broken ]; then echo "no such device"; exit 1; fi
    mkfifo $pipes/control
    echo $CUDA_VISIBLE_DEVICES > $MPS_TEST/started-$CUDA_VISIBLE_DEVICES
    echo $$ > $pipes/number
    mv $pipes/number $pipes/nvidia-cuda-mps-control.pid
    read word < $pipes/control
    echo $word > $MPS_TEST/ended-$CUDA_VISIBLE_DEVICES
else
    read word
    echo $word > $pipes/control
fi
"""


@pytest.fixture
def console():
    return Console(file=StringIO(), width=200)


@pytest.fixture
def mps(tmp_path, monkeypatch):
    """The script in the PATH, and the folder where it writes down what became of it."""
    program = tmp_path / "bin" / "nvidia-cuda-mps-control"
    program.parent.mkdir()
    program.write_text(DAEMON)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MPS_TEST", str(tmp_path))
    return tmp_path


def wait_for_the_end_of(process):
    deadline = time.monotonic() + 300
    while Path(f"/proc/{process}").exists() and " Z " not in Path(f"/proc/{process}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_gpu_has_a_daemon_of_its_own_and_is_device_0_to_its_clients(mps, console):
    with SharedGpus(["3", "5"], console) as gpus:
        given = [gpus.variables(slot, 1) for slot in range(4)]
        assert [variables["CUDA_VISIBLE_DEVICES"] for variables in given] == ["0"] * 4
        pipes = [Path(variables["CUDA_MPS_PIPE_DIRECTORY"]) for variables in given]
        assert pipes[0] == pipes[2] != pipes[1] == pipes[3]
        assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in pipes)
        assert {path.name for path in mps.glob("started-*")} == {"started-3", "started-5"}
    assert {path.read_text() for path in mps.glob("ended-*")} == {"quit\n"}
    assert len(list(mps.glob("ended-*"))) == 2
    assert not any(folder.exists() for folder in pipes)
    assert console.file.getvalue() == ""


def test_without_mps_runs_share_a_gpu_all_the_same_and_it_is_said(tmp_path, monkeypatch, console):
    monkeypatch.setenv("PATH", str(tmp_path))
    with SharedGpus(["3", "5"], console) as gpus:
        assert [gpus.variables(slot, 1) for slot in (0, 1, 2)] == [
            {"CUDA_VISIBLE_DEVICES": "3"},
            {"CUDA_VISIBLE_DEVICES": "5"},
            {"CUDA_VISIBLE_DEVICES": "3"},
        ]
    assert "without MPS, and so take turns on it: nvidia-cuda-mps-control" in console.file.getvalue()


def test_where_one_daemon_does_not_start_none_is_used(mps, console):
    with SharedGpus(["3", "broken"], console) as gpus:
        assert gpus.variables(0, 1) == {"CUDA_VISIBLE_DEVICES": "3"}
        assert (mps / "ended-3").exists()
    assert "of GPU broken did not start: no such device" in console.file.getvalue()


def test_a_daemon_that_does_not_listen_is_ended(mps, console, monkeypatch):
    monkeypatch.setattr("launchers.local.gpu_sharing._QUIT_S", 0.2)
    with SharedGpus(["3"], console) as gpus:
        folder = Path(gpus.variables(0, 1)["CUDA_MPS_PIPE_DIRECTORY"])
        daemon = int((folder / "nvidia-cuda-mps-control.pid").read_text())
        (folder / "control").rename(folder / "elsewhere")
    wait_for_the_end_of(daemon)


def test_no_daemon_outlives_a_grid_that_is_killed(mps):
    script = (
        "import os, rich.console; from launchers.local.gpu_sharing import SharedGpus\n"
        "gpus = SharedGpus(['3'], rich.console.Console()).__enter__()\n"
        "print(gpus.variables(0, 1)['CUDA_MPS_PIPE_DIRECTORY'], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    folder = Path(killed.stdout.strip())
    daemon = int((folder / "nvidia-cuda-mps-control.pid").read_text())
    wait_for_the_end_of(daemon)
    shutil.rmtree(folder)


def test_a_gpu_that_goes_by_its_own_name_keeps_it(mps, console):
    with SharedGpus(["GPU-8932f937"], console) as gpus:
        assert gpus.variables(0, 1)["CUDA_VISIBLE_DEVICES"] == "GPU-8932f937"


@pytest.mark.parametrize("other", [{"cluster": "slurm"}, {"max_parallel": 2}, {"ranks_per_node": 2}])
def test_runs_that_share_a_gpu_are_of_one_rank_on_this_machine(other):
    with pytest.raises(SpecError, match="--runs-per-gpu is for runs of one rank on this machine"):
        GridOptions(runs_per_gpu=2, **other)


def test_a_profile_of_cpus_has_no_runs_per_gpu(tmp_path, capsys):
    options = ["--suite", "sample_efficiency", "--runs-per-gpu", "2", "--runs", str(tmp_path)]
    assert grid.main(options) == Exit.MISUSE
    assert "this profile trains on CPUs; --max-parallel says" in " ".join(capsys.readouterr().err.split())


def test_as_many_runs_go_at_once_as_the_gpus_take_and_share_the_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    profile = get_suite("sample_efficiency").profile("gpu")
    at_once, resources = grid._resources(GridOptions(profile="gpu", runs_per_gpu=4), profile, 2)
    assert (at_once, resources.threads_per_rank) == (8, 2)
