"""The README's commands exist: each program answers --help, and knows every option that the README gives it."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
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
