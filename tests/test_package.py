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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_subcommands_help_calls_it_as_the_user_did(installed, tmp_path, name):
    shown = call(installed, tmp_path, name, "--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"usage: convolutional-prior {name} ")


def test_the_wheel_says_that_it_is_typed_and_under_which_license(installed):
    packages = next(installed.parent.glob("lib/python*/site-packages"))
    assert all((packages / Path(name).name / "py.typed").exists() for name in PACKAGES)
    assert list(packages.glob("*.dist-info/licenses/LICENSE"))


def test_a_subcommand_is_the_main_of_its_script(monkeypatch):
    given = []
    for name, command in COMMANDS.items():
        module = importlib.import_module(command.module)
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
