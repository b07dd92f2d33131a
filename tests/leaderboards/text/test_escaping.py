"""Text from elsewhere is text in a spreadsheet and in Markdown, never a formula, a tag or a command."""

import csv
import io

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.text.csv_files import render_accounting, render_long_csv
from leaderboards.text.escaping import escape_cell, escape_code, escape_markdown, spell_controls
from leaderboards.text.markdown import render_markdown
from leaderboards.text.notation import pad
from leaderboards.text.terminal import print_summary
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_is_text_in_a_csv_cell(text):
    assert str(escape_cell(text)).startswith("'")


@pytest.mark.parametrize("value", ["-0.3", "+1.5", "-1e-05", "12", "-", "convit_micro", "", -3.5, None, True, "5 %"])
def test_numbers_and_names_stay_as_they_are(value):
    assert escape_cell(value) == value


HIDDEN = ["\u061c", "\u200b", "\u2028", "\u2029", "\ufeff", "\U000e0000", "\U000e0041", "\U000e007f"]


@pytest.mark.parametrize("text", HIDDEN)
def test_what_no_eye_sees_is_spelt_out(text):
    for escape in (spell_controls, escape_markdown, escape_code):
        assert escape(f"a{text}b") == f"a{text.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize("text", ["# a title", "a\n\n# b", "*a*", "**a**\n* b", "a\n---", "a\n1. b"])
def test_markdown_shows_no_heading_emphasis_or_new_line(text):
    shown = escape_markdown(text)
    assert "\n" not in shown + escape_code(text) + pad([text], [], [False]).splitlines()[0]
    assert all(before == "\\" for before, found in zip(" " + shown, shown, strict=False) if found in "#*")


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "![x](http://a/b)", "`rm`", "\x1b[2J", "&lt;b>"])
def test_markdown_shows_text_as_it_is(text):
    shown = escape_markdown(text)
    assert "<" not in shown
    assert "\x1b" not in shown
    assert all(before == "\\" for before, found in zip(" " + shown, shown, strict=False) if found in "[]`")
    assert "`" not in escape_code(text)
    assert "<" not in pad(["a"], [[text]], [False])


def test_the_terminals_summary_steers_no_terminal(table2, tmp_path, capsys):
    print_summary(make_leaderboard(table2, "paper", tmp_path), ["a claim\x1b[2J"], tmp_path / "\x1b[2Jboard.md")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "a claim\\x1b[2J" in shown


def test_what_runs_left_behind_reaches_boards_and_files_as_text(table2, finish_experiment, tmp_path):
    profile = table2.profile("paper")
    first, second, *_ = (entry.experiment for entry in profile.entries)
    finish_experiment(first, 30.0, commit="=1+1", device="@SUM(A1)")
    run = RunDirectory.of(tmp_path, second)
    run.create(second)
    run.write_failure(Failure(kind="error", reason="<img src=x> [a](b) \x1b[2J", log_path="log`txt"))
    leaderboard = make_leaderboard(table2, "paper", tmp_path)
    shown = render_markdown(leaderboard)
    assert "&lt;img src=x> \\[a\\](b) \\x1b\\[2J" in shown
    assert "<img" not in shown
    (line,) = csv.DictReader(io.StringIO(render_accounting(leaderboard)))
    assert (line["commit"], line["device"]) == ("'=1+1", "'@SUM(A1)")
    assert any(line["commits"] == "'=1+1" for line in csv.DictReader(io.StringIO(render_long_csv(leaderboard))))
