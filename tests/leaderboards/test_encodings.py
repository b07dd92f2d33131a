"""Whatever the locale: every file and pipe of ours is UTF-8 by name, and what a stream lacks is spelt."""

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchers.command.command_line import parse_options
from suite.base.exit_codes import Exit
from suite.base.streams import spell_what_streams_lack
from suite.papers import get_suite

ROOT = Path(__file__).parents[2]
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OPENERS = ("open", "fdopen", "makefile", "TextIOWrapper", "TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile")
NO_FILES = (
    "os.open",
    "tarfile.open",
    "Image.open",
    "find_format(manifest.format).open",
    "journal.open",
    "storage.open",
    "remote.find(str(self)).open",
)


def reads_by_the_locale(call):
    """Whether a call opens text, or a pipe of it, without the name of an encoding."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    if "encoding" in given or called in NO_FILES:
        return False
    if called.startswith("subprocess.") or name == "Popen":
        return bool({"text", "universal_newlines", "errors"} & given.keys())
    if name in ("read_text", "write_text"):
        return not call.args or ast.unparse(call.args[0]) != "'direct_url.json'"  # metadata, which is always UTF-8
    texts = [
        node.value
        for part in (*call.args, *given.values())
        for node in ast.walk(part)
        if isinstance(node, ast.Constant)
    ]
    modes = [text for text in texts if isinstance(text, str) and text and set(text) <= set("rwaxbt+")]
    is_binary = any("b" in mode for mode in modes) if modes else name.endswith("TemporaryFile")
    return name in OPENERS and not is_binary


@pytest.mark.parametrize("folder", ["suite", "launchers", "leaderboards", "datasets", "benchmarks", "examples", "docs"])
def test_every_text_file_and_pipe_of_ours_names_its_encoding(folder):
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and reads_by_the_locale(node)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("path.read_text()", True), ("path.open('a')", True), ("path.open(newline='')", True), ("open(path)", True),
        ("subprocess.run(words, text=True)", True), ("tempfile.TemporaryFile('w+')", True),
        ("path.open('rb')", False), ("path.read_text(encoding='utf-8')", False), ("subprocess.run(words)", False),
    ],
)  # fmt: skip
def test_the_search_finds_what_the_locale_would_decide(code, is_found):
    assert reads_by_the_locale(ast.parse(code).body[0].value) == is_found


def test_a_board_is_built_and_summarized_in_a_locale_without_characters(tmp_path, finish_experiment):
    profile = get_suite("sample_efficiency").profile("smoke")
    for seed, top1 in ((0, 50.0), (1, 53.0), (2, 51.0)):
        for entry in profile.entries:
            if entry.row == ("5",) and not entry.table:
                finish_experiment(entry.experiment.with_seed(seed), top1 + seed * len(entry.experiment.model))
    command = [sys.executable, ROOT / "leaderboards/build.py", "--suite", "sample_efficiency", "--profile", "smoke"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'datasets'}"}
    done = subprocess.run([*command, "--runs", tmp_path], capture_output=True, env=environment | paths | C_LOCALE)
    assert done.returncode == 0, done.stderr
    assert b" +/- " in done.stdout
    assert " ± " in (tmp_path / "leaderboards/sample_efficiency/smoke.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [
        ("ascii", b"...+/-\\xe9\\udce9"),
        ("iso-8859-1", b"...\xb1\xe9\\udce9"),
        ("utf-8", "…±é\\udce9".encode()),
    ],
)
def test_a_character_that_a_stream_lacks_is_spelt(monkeypatch, encoding, printed):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    spell_what_streams_lack()
    print("…±é\udce9", end="", flush=True)
    assert stream.buffer.getvalue() == printed


@pytest.mark.parametrize("option", ["--runs", "--data-dir", "--teacher-weights"])
def test_a_path_that_could_not_be_written_down_is_refused_at_once(capsys, option):
    with pytest.raises(SystemExit) as ended:
        parse_options(["--suite", "sample_efficiency", option, "caf\udce9"])
    assert ended.value.code == Exit.MISUSE
    assert f"argument {option}: found 'caf\\udce9', expected text in " in capsys.readouterr().err
