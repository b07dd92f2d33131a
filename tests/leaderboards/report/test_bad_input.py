"""Boards that nobody plans for: endless names, one cell, a thousand, none, no number of a paper, no picture."""

import csv
import io
import re

import pytest
from rich.cells import cell_len

from leaderboards import board_files
from leaderboards.boards.board import make_leaderboard
from leaderboards.report import suite_page
from leaderboards.text.terminal import print_summary
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe

LONG = "long name " * 150 + "x" * 1_500
RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
SMALL = Experiment(model="small", dataset="cifar10", image_size=32, recipe=RECIPE)
BOARDS = ("names of 3,000 characters", "one cell", "a thousand cells", "no cell", "no paper's number")


@pytest.fixture(params=BOARDS)
def leaderboard(request, own_suite, table2, finish_experiment, fill, tmp_path):
    if request.param == "no cell":
        return make_leaderboard(table2, "laptop", tmp_path)  # the profile plans cells, and none has a run
    if request.param == "no paper's number":
        fill(2)
        table = table2.tables[0].model_copy(update={"name": "ours", "columns": ("deit_top1", "convit_top1")})
        table = table.model_copy(update={"derived": ()})
        entries = [Entry(row=entry.row, columns=dict([next(iter(entry.columns.items()))]), experiment=entry.experiment)
                   for entry in table2.profile("laptop").entries]  # fmt: skip
        profile = table2.profile("laptop").model_copy(update={"entries": tuple(entries)})
        suite = table2.model_copy(update={"tables": (table,), "profiles": {"laptop": profile}, "figures": ()})
        return make_leaderboard(suite, "laptop", tmp_path)
    rows, named = {"one cell": (1, "row"), "a thousand cells": (1_000, "row")}.get(request.param, (2, LONG))
    columns = {"a": "top1_percent"}
    entries = [Entry(row=(f"{named} {i}",), columns=columns, experiment=SMALL) for i in range(rows)]
    for seed in range(2):
        finish_experiment(SMALL.with_seed(seed), 40.0 + seed, device=LONG, commit=LONG)
    suite = own_suite(*entries).model_copy(update={"question": named, "footnotes": (LONG,)})
    return make_leaderboard(suite, "laptop", tmp_path)


def test_every_file_of_the_board_is_written_and_has_every_name(leaderboard, tmp_path):
    out = tmp_path / "out"
    markdown = board_files.write_leaderboard(leaderboard, out).read_text()
    board_files.write_page(leaderboard, out, [])
    page = (out / "laptop.html").read_text()
    assert len(page.encode()) < suite_page.MOST_BYTES + 500_000  # tables and notes alone may have more
    board = leaderboard.board()
    for row in list(board.paper.rows)[:3]:
        assert row[0] in markdown
        assert row[0] in page
    lines = list(csv.reader((out / f"laptop.{board.table.name}.csv").open()))
    assert [line[0] for line in lines[1:]] == [row[0] for row in board.paper.rows]


def test_no_board_is_wider_than_the_screen(leaderboard, browser, tmp_path):
    (tmp_path / "page.html").write_text(suite_page.render_suite_page(leaderboard, {}))
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    for width in (390, 768, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_tables_for_print_are_as_large_as_a_pdf_may_be_at_most(leaderboard):
    page = suite_page.RunReader(leaderboard)
    table = suite_page.view_table(leaderboard.board(), page, {})
    files = {file.label: file.content for file in suite_page.list_table_files(leaderboard.board(), table)}
    width, height = map(float, re.search(rb"/MediaBox \[ 0 0 (\S+) (\S+) \]", files["PDF"]).groups())
    assert max(width, height) <= 14_401
    assert files["SVG"].startswith(b"<?xml")


@pytest.mark.parametrize("width", [1, 20, 80])
def test_a_terminal_of_any_width_without_colours_shows_the_summary(leaderboard, tmp_path, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    print_summary(leaderboard, [LONG], tmp_path / "page.html")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.splitlines()[-1] == f"Leaderboard: {tmp_path / 'page.html'}"
    if width == 80:
        assert max(cell_len(line.rstrip()) for line in shown.splitlines()[:-1]) <= 80


def test_a_terminal_without_unicode_shows_the_summary_in_ascii(leaderboard, tmp_path, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr("sys.stdout", stream)
    print_summary(leaderboard, [], tmp_path / "page.html")
    stream.flush()
    assert stream.buffer.getvalue().isascii()


def test_a_picture_that_cannot_be_made_is_named_and_the_rest_of_the_board_is_there(
    table2, fill, tmp_path, monkeypatch, capsys
):
    def fail(*_):
        raise ValueError("Image size of 300000x700 pixels is too large")

    fill(2)
    monkeypatch.setattr("leaderboards.figures.lines.draw_lines", fail)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    board_files.write_leaderboard(leaderboard, tmp_path / "out")
    assert "error: Fig. 2a is not drawn: Image size of 300000x700" in capsys.readouterr().err
    board_files.write_page(leaderboard, tmp_path / "out", [])
    page = (tmp_path / "out/laptop.html").read_text()
    assert "or what is cannot be read: Fig. 2a." in page
    assert 'id="t-convit_table2"' in page


def test_a_log_that_cannot_be_read_leaves_its_curve_out_alone(table2, finish, tmp_path):
    for family in ("deit", "convit"):
        run = finish(family, "5", 0, 40.0)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "loss": 2.0 / step})
    run.metrics_path.write_text("{\n{\n")
    page = suite_page.render_suite_page(make_leaderboard(table2, "laptop", tmp_path), {})
    assert "Learning curves" in page
