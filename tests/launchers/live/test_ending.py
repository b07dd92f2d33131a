"""A server beside a grid ends with it, however that ends."""

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suite.base.exit_codes import Exit
from tests.launchers.live.conftest import WORDS, ask, grid_of

ROOT = Path(__file__).parents[3]


def ask_on(port):
    """Ask for as long as there is an answer, which a process that is ending still gives."""
    for _ in range(10_000):
        ask(port, "/state.json")


def test_a_server_beside_a_grid_shows_its_store_and_ends_with_it_however_that_ends(tmp_path):
    (tmp_path / "experiments").mkdir()
    command = [sys.executable, str(ROOT / "launchers/grid.py"), *WORDS, "--runs", str(tmp_path), "--status"]
    grid = subprocess.Popen([*command, "--serve", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    url = grid.stdout.readline().split()[-1]
    port = int(url.rpartition(":")[2].strip("/"))
    status = 0
    for _ in range(20):  # each waits for a minute on a machine that is busy with other things
        status, said, _ = ask(port, "/state.json")
        if status == 200:
            break
    assert (status, json.loads(said)["summary"]) == (200, "10 runs: 10 new")
    grid.kill()
    grid.wait()
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask_on(port)


def ask_state(url):
    """The state as a page asks for it; the first takes a minute on a machine that is busy with other things."""
    port = int(url.rpartition(":")[2].strip("/"))
    return json.loads(next(said for status, said, _ in iter(lambda: ask(port, "/state.json"), None) if status == 200))


def test_a_grid_that_is_killed_is_told_to_who_looked(tmp_path):
    (tmp_path / "experiments").mkdir()
    words = [*WORDS, "--runs", str(tmp_path), "--serve", "127.0.0.1:0"]
    code = f"""
import time
from launchers.command.command_line import parse_options
from launchers.core.console import SafeConsole
from launchers.live.serving import serving
with serving(parse_options({words}), {words}, SafeConsole()):
    time.sleep(600)
"""
    grid = subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    url = grid.stdout.readline().split()[-1]
    assert ask_state(url)["end"] == ""
    grid.kill()
    grid.wait()
    while not (end := ask_state(url)["end"]):
        pass
    assert end.startswith("The grid was killed: 0 of 10 done in ")
    assert end.endswith(f"To go on: python launchers/grid.py {' '.join(words)}")


def test_in_a_terminal_the_pages_stay_after_the_end_until_ctrl_c(tmp_path, finish):
    for experiment in grid_of(tmp_path).experiments:
        finish(experiment)
    command = [sys.executable, str(ROOT / "launchers/grid.py"), *WORDS, "--runs", str(tmp_path), "--serve", ":0"]
    ours, theirs = os.openpty()
    grid = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as terminal:
        said = iter(terminal.readline, "")
        url = next(line for line in said if "live pages: " in line).split()[-1]
        next(line for line in said if "stays until Ctrl-C" in line)
        state = ask_state(url)
        while not state["end"]:
            state = ask_state(url)
        assert state["end"].startswith("10 of 10 done in ")
        grid.send_signal(signal.SIGINT)
        assert grid.wait() == Exit.DONE
