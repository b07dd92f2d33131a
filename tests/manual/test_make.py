"""``make`` looks at its Python first, and makes the environment anew where it is of no use."""

import os
import shlex
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
ANEW, AGAIN = "python3 -m venv --clear .venv\n", "python3 -m venv  .venv\n"
PIP, DEMO = ".venv/bin/python -m pip install ", ".venv/bin/python launchers/grid.py "


@pytest.fixture
def project(tmp_path):
    """A folder with the Makefile, and an environment of the ``python3`` in ``bin`` where everything is installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(Path(sys.executable).resolve())
    venv.create(tmp_path / ".venv", symlinks=True)
    next(tmp_path.glob(".venv/lib/python*/site-packages")).joinpath("suite.py").touch()
    (tmp_path / ".venv/installed").touch()
    return tmp_path


def dry_run(project, *arguments):
    """Return what ``make demo`` would run, or its last words."""
    done = make(project, "--dry-run", "demo", *arguments)
    return done.stderr if done.returncode else done.stdout


def make(project, *arguments):
    """Call ``make`` where ``python3`` is the one in ``bin``."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHON" and not name.startswith("MAKE")}
    environment = kept | {"PATH": f"{project / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(["make", *arguments], cwd=project, capture_output=True, text=True, env=environment)


def pretend(program, version):
    """Let a program be this Python, but of another version and in a place of its own."""
    code = f'import sys; sys.version_info = {version}; sys.executable = "{program}"; exec(sys.argv[2])'
    program.unlink(missing_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18), (3, 10, 13)])
def test_a_python_that_is_too_old_is_refused_in_one_line_before_anything_is_made(project, version):
    shutil.rmtree(project / ".venv")
    pretend(project / "bin/python3", version)
    said = dry_run(project)
    assert said.count("\n") == 1
    assert f"python3: it is Python {'.'.join(map(str, version))}. Expected Python 3.11 or newer" in said


def test_a_python_that_is_not_there_is_refused_in_one_line(project):
    said = dry_run(project, "PYTHON=no-such-python")
    assert said.count("\n") == 1
    assert "no-such-python: not found. Expected Python 3.11 or newer" in said


def test_a_whole_environment_needs_no_python3_and_is_brought_up_to_date_by_its_own(project):
    pretend(project / "bin/python3", (3, 8, 18))
    assert dry_run(project).startswith(DEMO)
    os.utime(project / "constraints.txt")
    assert dry_run(project).startswith(".venv/bin/python -m venv  .venv\n")


def test_the_first_installation_goes_into_an_environment_that_is_there(project):
    (project / ".venv/installed").unlink()
    assert dry_run(project).startswith(AGAIN)


def test_after_a_first_installation_that_failed_the_next_one_begins_anew(project):
    shutil.rmtree(project / ".venv")
    whole = (project / "pyproject.toml").read_text(encoding="utf-8")
    (project / "pyproject.toml").write_text("what pip cannot read", encoding="utf-8")
    assert make(project, ".venv/installed").returncode != 0
    (project / "pyproject.toml").write_text(whole, encoding="utf-8")
    assert not (project / ".venv/installed").exists()
    assert dry_run(project).startswith(ANEW)


@pytest.mark.parametrize(
    "what", ["another Python is named", "another Python tried", "cut short", "moved", "its Python is gone"]
)
def test_an_environment_that_is_of_no_use_is_made_anew(project, what):
    named = ()
    if what == "another Python is named":
        named = (f"PYTHON={pretend(project / 'bin/other-python3', (3, 12, 1))}",)
    elif what == "another Python tried":
        (project / ".venv/installed").unlink()
        pretend(project / "bin/python3", (3, 12, 1))
    elif what == "cut short":
        (project / ".venv/installed").rename(project / ".venv/unfinished")
    elif what == "moved":
        next(project.glob(".venv/lib/python*/site-packages/suite.py")).unlink()
    else:
        (project / ".venv/bin/python").unlink()
    said = dry_run(project, *named)
    assert said.partition("\n")[0].endswith(ANEW.strip())
    assert said.index(PIP) < said.index(DEMO)


def test_every_pinned_package_can_be_had_by_every_python_that_the_project_is_for():
    checked = 0
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed here
            continue
        if found.version.partition("+")[0] == version:
            checked += 1
            assert "3.11.0" in SpecifierSet(found.metadata["Requires-Python"] or ""), line
    assert checked > 50
