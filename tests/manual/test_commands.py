"""Every command of the README, the manual and the examples is run, in one process, in a folder with a run and a few
images; an example's where the examples are.

What would train for long is planned: it gets ``--dry-run``. After the comment ``<!-- parsed only: why -->``, commands
go through their own command line and no further. What ``make`` starts is a command like the others.
"""

import argparse
import ast
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from launchers.command import command_line
from launchers.command.command_line import parse_options
from suite.papers import get_suite, list_suites
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint import save_weights
from suite.training.start import start_network

# commands run in this process, which has their modules by then
pytestmark = pytest.mark.filterwarnings("ignore:.* found in sys.modules after import of package:RuntimeWarning")

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?P<mark><!-- parsed only: [^\n]+ -->\n)?^```(?P<kind>sh|console)\n(?P<body>.*?)^```$", re.M | re.S
)
ENDS_AT_ONCE = {"--freeze", "--list", "--show", "--check", "--dry-run", "--status", "--cancel"}
NO_PROGRAM_OF_OURS = ("source .venv/bin/activate", "sudo apt-get install ")


def commands_of(text):
    """(command, whether it is only parsed) of each command of a page."""
    for fence in FENCE.finditer(text):
        lines = fence["body"].splitlines()
        if fence["kind"] == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines:
            if line and not line.startswith(("#", *NO_PROGRAM_OF_OURS)):
                yield line.partition("  #")[0].strip(), bool(fence["mark"])


def started_by_make(command):
    """The commands of ours that a ``make`` starts, as ``make`` itself writes them."""
    said = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True)
    return re.findall(r"^\.venv/bin/(python (?!-m pip|-m pytest|-m sphinx|-m venv).*)$", said.stdout, re.M)


def all_commands():
    """{command: whether it is only parsed}; one that stands on several pages is run once."""
    found = {f"python launchers/grid.py --suite {name}": False for name in list_suites()}  # on the suites' pages
    for page in PAGES:
        for command, is_parsed in commands_of(page.read_text()):
            for each in started_by_make(command) if command.startswith("make ") else [command]:
                found[each] = found.get(each, True) and is_parsed
    return found | dict.fromkeys(OF_EXAMPLES, False)


OF_EXAMPLES = [
    line
    for example in sorted((ROOT / "examples").glob("*.py"))
    for line in (ast.get_docstring(ast.parse(example.read_text())) or "").splitlines()
    if line.startswith(("python ", "convolutional-prior "))
]
COMMANDS = all_commands()
# what their own tests find there, and the grids on their images need
PREPARE = [command for command in COMMANDS if re.search("my_images.py|--dataset (flowers|shapes) --source", command)]


class Parsed(Exception):
    pass


def call(command, monkeypatch):
    """Start a program of ours as Python does."""
    words = shlex.split(command.replace("convolutional-prior ", "python -m launchers.commands "))
    assert words.pop(0) == "python", command
    if command in OF_EXAMPLES:
        monkeypatch.chdir("examples")
    is_module = words[0] == "-m"
    program = words.pop(0) if not is_module else words[1]
    arguments = words[2:] if is_module else words
    if "grid.py" in program or arguments[:1] == ["grid"]:
        parse_options([argument for argument in arguments if argument != "grid"])
        if not ENDS_AT_ONCE & set(arguments):
            arguments.append("--show" if "--challenger" in arguments else "--dry-run")
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    status = None
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            path = (Path if command in OF_EXAMPLES else ROOT.joinpath)(program)
            monkeypatch.syspath_prepend(str(path.parent.absolute()))
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:
        status = ended.code
    except Parsed:
        pass
    assert not status, command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working folder with the run that the manual exports, a colleague's store, and photographs of two flowers."""
    folder = tmp_path_factory.mktemp("manual")
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "my_package").mkdir()
    shutil.copy(ROOT / "examples/my_vit.py", folder / "my_package/models.py")
    experiment = get_suite("sample_efficiency").profile("laptop").experiments()[0]
    run = RunDirectory.of(folder / "runs", experiment)
    run.create(experiment)
    save_weights(start_network(run, experiment, 10).state_dict(), run.weights_path)
    steps = experiment.num_steps(1000)
    seen = {"num_steps": steps, "images_seen": steps * experiment.recipe.batch_size, "train_s": 1.0}
    scores = {"top1_percent": 36.0, "top5_percent": 87.0, "test_loss": 1.5, "best_top1_percent": 36.0}
    counts = {"num_parameters": 1, "num_train_images": 1000, "num_test_images": 10_000, "num_ranks": 1}
    origin = {"device": "a CPU", "num_attempts": 1, "commit": "v0", "finished_at": "2026-01-01T00:00:00+00:00"}
    given = {**seen, **scores, **counts, **origin, "images_per_s": 1.0, "protocol_version": PROTOCOL_VERSION}
    run.write_result(Result(experiment=experiment, **given))
    (run.path / "metrics.jsonl").write_text('{"step": 1, "num_steps": 1, "epoch": 1.2, "loss": 2.5}\n')
    shutil.copytree(folder / "runs", folder / "runs-of-a-colleague")
    for split, name, index in ((s, n, i) for s in ("train", "val") for n in ("rose", "tulip") for i in range(4)):
        path = folder / "flowers" / split / name / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((36, 40, 3), 20 * index, dtype=np.uint8)).save(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HOME", str(folder))
        for command in PREPARE:
            patch.chdir(folder)
            call(command, patch)
    return folder


def test_the_manual_shows_commands_of_each_program():
    programs = {" ".join(command.split()[1:3]) if " -m " in command else command.split()[1] for command in COMMANDS}
    assert {"launchers/grid.py", "leaderboards/build.py", "datasets/prepare.py", "-m suite.export"} <= programs
    assert sum(COMMANDS.values()) < len(COMMANDS) / 2


@pytest.mark.parametrize("command", [command for command, is_parsed in COMMANDS.items() if not is_parsed])
def test_a_command_of_the_manual_does_what_it_says(folder, command, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("IMAGESETS_DIR", str(folder / "data"))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SUITE_CACHE_DIR", str(folder / "cache"))  # counts of FLOPs
    monkeypatch.syspath_prepend(str(folder))
    before = signal.getsignal(signal.SIGTERM)
    call(command, monkeypatch)
    signal.signal(signal.SIGTERM, before)
    said = capsys.readouterr().out
    assert said or "my_images.py" in command
    if "--json" in command:
        assert json.loads(said)["format_version"]
        return
    assert ("--check" in command) == (said.count(": yes") == 10)
    for name, model in re.findall(r"--(?:check|challenger) (\w+)=(\S+)", command):
        pattern = (
            rf"{name}: {model} \("
            if "--check" in command
            else rf"^  (custom-\w+|{name})-[0-9a-f]{{16}}/seed-\d+  {name} "
        )
        assert re.search(pattern, said, re.MULTILINE), name
    for name in ("flowers", "shapes"):
        assert bool(re.search(f"--dataset {name} --(?:loader|data-dir)", command)) == (f"laptop@{name}" in said)


@pytest.mark.parametrize("command", [command for command, is_parsed in COMMANDS.items() if is_parsed])
def test_a_command_that_cannot_run_here_is_one_that_its_program_knows(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    parse = argparse.ArgumentParser.parse_args

    def parse_only(*args, **kwargs):
        parse(*args, **kwargs)
        raise Parsed

    if "grid.py" in command:
        parse_options(shlex.split(command)[2:])
    else:
        monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
        call(command, monkeypatch)


def test_the_manuals_python_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = {}
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text(), re.M | re.S)
    exec(block, found)
    assert len(found["runs"]) == 1
    assert len(found["cells"]) == 45
    assert found["curves"].loss.tolist() == [2.5]
    assert not found["network"].training


def test_options_named_in_prose_are_the_programs():
    named = {option for page in PAGES for option in re.findall(r"`(--[a-z-]+)[ `]", page.read_text())}
    others = (
        "datasets/imagesets/prepare/__main__.py",
        *(f"leaderboards/{n}.py" for n in ("build", "submit", "verify")),
    )
    known = set(command_line._make_parser()._option_string_actions)
    known.update(option for path in others for option in re.findall(r'"(--[a-z-]+)"', (ROOT / path).read_text()))
    assert named - known == set()


def test_the_environment_is_the_same_after_a_command(folder):
    assert Path.cwd() != folder
    assert os.environ.get("IMAGESETS_DIR") != str(folder / "data")
