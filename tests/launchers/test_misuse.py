"""Misuse is refused at once and in one line: stores that are none, too many seeds, an output that is full."""

import errno
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.grid import main
from suite import execute
from suite.base.exit_codes import Exit
from suite.papers import get_suite
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
COMMAND = ["--suite", "sample_efficiency", "--profile", "smoke"]
AS_NOBODY = """
import os, sys
from launchers import grid; from launchers.slurm import train_on_slurm as on_slurm
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
sys.exit(grid.main(sys.argv[1:]))
"""


def run(*options, code=AS_NOBODY, **more):
    command = [sys.executable, "-c", code, *COMMAND, *map(str, options)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # unwritable
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300, env=environment, **more)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("file", "is a file; expected a folder"),
        ("file/below", "file is a file; expected a folder"),
        ("/proc/x", "cannot be written to"),
    ],
)
def test_a_store_that_is_none_is_said_in_one_line_not_in_one_a_run(tmp_path, capsys, place, message):
    (tmp_path / "file").touch()
    assert main([*COMMAND, "--runs", str(tmp_path / place)]) == Exit.MISUSE
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("mode", "options", "message"), [(0o700, ["--status"], "read"), (0o755, [], "written to")])
def test_a_user_without_rights_to_the_store_is_told_so_in_one_line(tmp_path, mode, options, message):
    for folder in (*tmp_path.parents, tmp_path):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(mode)
    done = run("--runs", store, *options, stdout=subprocess.DEVNULL)
    assert done.returncode == Exit.MISUSE
    assert f"cannot be {message}: Permission denied" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full_is_said_in_one_line(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = run("--runs", tmp_path, "--status", code="import sys; from launchers.grid import main; sys.exit(main())",
                   stdout=full)  # fmt: skip
    assert done.returncode == Exit.FAILED
    assert done.stderr == "grid.py: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("number", ["99999999999999999999", "10001", "9" * 5000])
def test_more_seeds_than_any_grid_has_are_refused_before_they_are_made(capsys, number):
    with pytest.raises(SystemExit) as ended:
        main([*COMMAND, "--seeds", number])
    assert ended.value.code == Exit.MISUSE
    assert "expected" in capsys.readouterr().err


def test_a_seed_that_is_not_planned_is_told_with_the_option_that_plans_it(capsys, tmp_path):
    assert main([*COMMAND, "--only", "seed=1", "--dry-run", "--runs", str(tmp_path)]) == Exit.MISUSE
    assert "--seeds N plans seeds 0 to N-1" in capsys.readouterr().err


def test_compiled_steps_of_weights_in_pieces_are_refused(capsys):
    assert main([*COMMAND, "--compile", "--zero-stage", "3"]) == Exit.MISUSE
    assert "--compile goes with --zero-stage 0, 1 or 2" in capsys.readouterr().err


@pytest.mark.parametrize("other", [["--compile"], ["--zero-stage", "1"], ["--micro-batch", "8"], []])
def test_cuda_graphs_of_what_no_gpu_records_whole_are_refused(capsys, tmp_path, other):
    assert main([*COMMAND, "--cuda-graphs", *other, "--runs", str(tmp_path)]) == Exit.MISUSE
    assert "--cuda-graphs goes with" in capsys.readouterr().err


COMMANDS = {
    "grid": ["launchers/grid.py", "--list"],
    "build": ["leaderboards/build.py", "--all"],
    "prepare": ["datasets/prepare.py", "--help"],
    "fetch": ["-m", "imagesets", "--help"],
    "export": ["-m", "suite.export", "--help"],
    "models": ["-m", "suite.models", "--help"],
    "convolutional-prior": ["-c", "from launchers.commands import main; main(['grid', '--list'])"],
}
CTRL_C = """
import sys
class CtrlC:
    def find_spec(name, path=None, target=None):
        if name == "pydantic":
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_a_command_still_loads_ends_it_in_one_line(tmp_path, name):
    (tmp_path / "sitecustomize.py").write_text(CTRL_C)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, *COMMANDS[name]]
    ended = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (Exit.INTERRUPTED, "interrupted\n")


@pytest.mark.parametrize(
    ("name", "breaks", "arguments"),
    [
        ("leaderboards.build", "build", ["--suite", "sample_efficiency", "--runs", "STORE"]),
        ("suite.export.__main__", "list_runs", ["--results-csv", "results.csv", "--runs", "STORE"]),
        ("imagesets.prepare.__main__", "prepare", ["--dataset", "cifar10_sample", "--format", "folder"]),
        ("imagesets.__main__", "get_info", ["cifar10"]),
    ],
)
def test_a_disk_that_only_reads_is_said_in_one_line_by_every_command(
    tmp_path, capsys, monkeypatch, name, breaks, arguments
):
    def refuse(*arguments, **named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "a file")

    (tmp_path / "experiments").mkdir()
    monkeypatch.setattr(f"{name}.{breaks}", refuse)
    arguments = [str(tmp_path) if argument == "STORE" else argument for argument in arguments]
    assert importlib.import_module(name).main(arguments) == Exit.FAILED
    assert "error: [Errno 30] Read-only file system: 'a file'; " in capsys.readouterr().err


def test_a_run_in_a_store_that_only_reads_is_said_in_one_line(tmp_path, capsys, monkeypatch):
    def refuse(*arguments, **named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    experiment = get_suite("sample_efficiency").profile("smoke").experiments()[0]
    run = RunDirectory.of(tmp_path, experiment)
    run.create(experiment)
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    assert execute.run(run.path, Resources()) == Exit.FAILED
    assert re.fullmatch(r"error: cannot write .*claim.lock: .*Read-only.*\n", capsys.readouterr().err)


def test_help_explains_eight_options_and_names_all_others_which_help_all_explains(capsys):
    told = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == Exit.DONE
        told.append(capsys.readouterr().out)
    short, whole = told
    options = r"^  (?:-\w, )?(--[\w-]+)"
    explained = set(re.findall(options, whole, re.MULTILINE))
    assert set(re.findall(r"--[\w-]+", short)) >= explained
    common = re.findall(options, short.partition("which runs:")[0], re.MULTILINE)
    assert len(set(common) - {"--help", "--help-all", "--version"}) == 8
    assert len(short) < len(whole) / 2
