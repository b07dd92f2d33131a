"""The README's commands exist: each program answers --help, and knows every option that the README gives it."""

import functools
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from imagesets.prepare.__main__ import main as prepare
from launchers import grid

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
OWN_MODEL = TEXT.partition("## Your own model\n")[2].partition("```\n\n")[0]
COMMANDS = sorted({line.split("#")[0].strip() for line in re.findall(r"^python .*", TEXT, re.MULTILINE)})


def help_of(command):
    return ask_for_help(*command.split()[1 : 3 if command.split()[1] == "-m" else 2])


@functools.cache
def ask_for_help(*program):
    done = subprocess.run([sys.executable, *program, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_shows_commands():
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_the_readme_is_in_the_programs_help(command):
    text = help_of(command)
    assert [option for option in re.findall(r"--[a-z-]+", command) if option not in text] == []


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder with what the commands of one's own model name: the examples, a package and a prepared image set."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "my_package").mkdir()
    shutil.copy(ROOT / "examples/my_vit.py", tmp_path / "my_package/models.py")
    for split in ("train", "test"):
        for name in ("disc", "square"):
            (tmp_path / "flowers" / split / name).mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(tmp_path / "flowers" / split / name / "0.png")
    (loader,) = set(re.findall(r"--dataset flowers .*--loader (\w+)", OWN_MODEL)) or {"memory"}
    assert prepare(["--dataset", "flowers", "--source", str(tmp_path / "flowers"), "--format", loader,
                    "--out", str(tmp_path / "data")]) == 0  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("IMAGESETS_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SUITE_CACHE_DIR", str(tmp_path / "cache"))  # counts of FLOPs
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("command", re.findall(r"^python launchers/grid\.py ([^#\n]*)", OWN_MODEL, re.MULTILINE))
def test_every_command_of_ones_own_model_is_one(command, capsys):
    checks = "--check" in command
    assert grid.main([*command.split(), *([] if checks else ["--show"])]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    entered = re.findall(r"--(?:check|challenger) (\w+)=(\S+)", command)
    if checks:
        assert said.count(": yes") == 8
    for name, model in entered:
        assert f"{name}: {model} (" in said if checks else re.search(rf"^  {name}-[0-9a-f]{{16}}/seed-0 ", said, re.M)
    assert ("flowers" in command) == ("laptop@flowers" in said)


def test_ones_own_model_has_commands():
    assert OWN_MODEL.count("--check") == 2
    assert OWN_MODEL.count("--challenger") == 3


def test_options_named_in_prose_are_the_grids():
    named = set(re.findall(r"`(--[a-z-]+)[ `]", TEXT))
    text = help_of("python launchers/grid.py") + help_of("python datasets/prepare.py")
    assert [option for option in sorted(named) if option not in text] == []


def test_the_makefile_has_the_readmes_two_commands():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\$ make ([a-z]+)", TEXT)) <= set(targets)


def test_nothing_is_left_to_fill_in_and_linked_files_exist():
    assert "@@" not in TEXT
    linked = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    assert [link for link in linked if not (ROOT / link).exists()] == []
    assert len(linked) > 2
