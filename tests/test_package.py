"""The wheel, installed beside nothing of the checkout, is the whole suite."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import timm
import torch
import yaml

from launchers.commands import COMMANDS, main

ROOT = Path(__file__).parents[1]
PACKAGES = ("suite", "launchers", "leaderboards", "datasets/imagesets")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The scripts' folder of an environment with the wheel, and all that it depends on from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    pip = [sys.executable, "-I", "-m", "pip", "--isolated", "--disable-pip-version-check"]
    alone = ["--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *alone, "--no-build-isolation", "-w", folder, folder / "source"], check=True)
    venv.create(folder / "venv")
    wheel = next(folder.glob("*.whl"))
    subprocess.run(
        [*pip, "--python", folder / "venv/bin/python", "install", *alone, "--ignore-installed", wheel], check=True
    )
    packages = next((folder / "venv").glob("lib/python*/site-packages"))  # after pip, which would find the suite there
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "venv/bin"


def call(installed, folder, *arguments):
    """Run the installed command in a folder that has nothing to do with the checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [installed / "convolutional-prior", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_an_installed_wheel_trains_builds_a_leaderboard_and_exports_outside_the_checkout(installed, tmp_path):
    grid = ("grid", "--suite", "sample_efficiency", "--profile", "smoke", "--only", "model=deit_micro")
    trained = call(installed, tmp_path, *grid, "train_fraction=0.04")
    assert trained.returncode == 0, trained.stdout + trained.stderr
    (result,) = tmp_path.glob("runs/experiments/*/*/result.json")
    assert json.loads(result.read_text())["commit"] == f"v{VERSION}"
    exported = call(installed, tmp_path, "export", "/".join(result.parts[-3:-1]), "--to", "out")
    assert exported.returncode == 0, exported.stdout + exported.stderr
    network = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True)
    assert network(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    built = call(installed, tmp_path, "build", "--all", "--out", "boards")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "DeiT" in (tmp_path / "boards/sample_efficiency/smoke.md").read_text()
    assert "<table" in (tmp_path / "boards/sample_efficiency/smoke.html").read_text()


@pytest.fixture
def copied(tmp_path):
    """A project of its own that holds what tells the commit, in git; yields its folder and its commit."""
    (tmp_path / "suite/base").mkdir(parents=True)
    for name in ("__init__.py", "base/__init__.py", "base/commit.py", "base/streams.py"):
        shutil.copy(ROOT / "suite" / name, tmp_path / "suite" / name)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return tmp_path, head.stdout.strip()


def tell_commit(project, **variables):
    code = "import suite.base.commit; print(suite.base.commit.commit())"
    environment = {**os.environ, "PYTHONPATH": str(project), **variables}
    return subprocess.run([sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_checkout_that_belongs_to_somebody_else_tells_its_commit(copied):
    project, head = copied
    for path in (project, *project.rglob("*")):
        os.chown(path, 12345, 12345)
    assert tell_commit(project).stdout.strip() == head
    (project / "suite/__init__.py").write_text("changed = True")
    assert tell_commit(project).stdout.strip() == f"{head}+changes"


def test_the_commit_is_of_the_projects_own_folder_whatever_git_has_started_it(copied, tmp_path):
    project, head = copied
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "other")], check=True)
    hooked = {"GIT_DIR": str(tmp_path / "other"), "GIT_INDEX_FILE": str(tmp_path / "none")}
    assert tell_commit(project, **hooked).stdout.strip() == head


def test_where_git_cannot_tell_the_commit_that_is_said(copied):
    project, _ = copied
    shutil.rmtree(project / ".git/objects")
    told = tell_commit(project)
    assert told.stdout.strip() == "unknown"
    assert "results will not name their commit: git cannot tell that of" in told.stderr


@pytest.mark.parametrize("metadata", ["convolutional_prior_suite.egg-info", None])
def test_a_copy_without_git_is_no_installed_version(copied, metadata):
    project, _ = copied
    shutil.rmtree(project / ".git")
    if metadata:  # as an editable installation leaves beside the packages
        (project / metadata).mkdir()
        (project / metadata / "PKG-INFO").write_text(
            "Metadata-Version: 2.1\nName: convolutional-prior-suite\nVersion: 9\n"
        )
        (project / metadata / "SOURCES.txt").write_text("suite/__init__.py\nsuite/base/commit.py\n")
    assert tell_commit(project).stdout.strip() == "unknown"


def test_an_installed_version_whose_source_was_edited_says_so(installed):
    edited = next(installed.parent.glob("lib/python*/site-packages")) / "suite/__init__.py"
    source = edited.read_bytes()
    try:
        edited.write_bytes(source + b"# edited")
        told = subprocess.run(
            [installed / "python", "-Ic", "import suite.base.commit; print(suite.base.commit.commit())"],
            stdout=subprocess.PIPE,
        )
    finally:
        edited.write_bytes(source)
    assert told.stdout.decode().strip() == f"v{VERSION}+changes"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_subcommands_help_calls_it_as_the_user_did(installed, tmp_path, name):
    shown = call(installed, tmp_path, name, "--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"usage: convolutional-prior {name} ")


@pytest.mark.parametrize("words", [["--version"], ["grid", "--version"]])
def test_the_installed_command_shows_the_version_of_the_project_file(installed, tmp_path, words):
    assert call(installed, tmp_path, *words).stdout == f"convolutional-prior {VERSION}\n"


def test_the_wheel_says_that_it_is_typed_and_under_which_license(installed):
    packages = next(installed.parent.glob("lib/python*/site-packages"))
    assert all((packages / Path(name).name / "py.typed").exists() for name in PACKAGES)
    assert list(packages.glob("*.dist-info/licenses/LICENSE"))


def test_a_subcommand_is_the_main_of_its_script(monkeypatch):
    given = []
    for name, (script, _) in COMMANDS.items():
        module = importlib.import_module(script)
        monkeypatch.setattr(module, "main", lambda arguments, name=name: given.append((name, arguments)) or 3)
        assert main([name, "--suite", "x"]) == 3
    assert given == [(name, ["--suite", "x"]) for name in COMMANDS]


def test_an_unknown_subcommand_is_a_misuse_that_shows_the_known_ones(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["gird"])
    assert ended.value.code == 2
    assert "grid" in capsys.readouterr().err


def test_the_citation_names_the_four_papers_and_no_version_of_its_own():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert len(citation["references"]) == 4
    assert "version" not in citation
    assert citation["authors"] == [{"name": "contributors of this project"}]
