import base64
import csv
import gzip
import html
import io
import random
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest

from launchers.command.command_line import parse_options
from launchers.command.custom_models import parse_custom_model
from launchers.command.grid_request import GridRequest
from launchers.core.plan import select
from leaderboards.boards.board import make_leaderboard
from leaderboards.published_boards import PUBLISHED
from leaderboards.report import suite_page
from leaderboards.report.compressed import compress_within
from leaderboards.report.findings_page import render_findings_html
from leaderboards.report.index_page import render_index_html
from leaderboards.report.latex import escape_latex, render_latex
from leaderboards.report.pictures.charts import find_charts
from leaderboards.report.pictures.plots import Plot, plot_column, scale
from leaderboards.report.runs_behind import COLUMNS, RunReader
from leaderboards.report.suite_page import render_suite_page
from leaderboards.report.table_files import draw_table
from leaderboards.report.tables import view_table
from leaderboards.text.csv_files import render_csv
from leaderboards.text.markdown import render_markdown
from suite.papers import get_suite
from suite.spec.custom_entries import with_custom_models
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe
from suite.store.custom_models import record_custom_models
from suite.store.results import Failure

EXAMPLES = Path(__file__).parents[3] / "examples"
RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
SMALL = Experiment(model="small", dataset="cifar10", image_size=32, recipe=RECIPE)
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e=cmd|' /C calc'!A0 [a](javascript:b)"


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.found.append((name, dict(attributes)))

    def handle_data(self, text):
        self.text += text


@pytest.fixture
def hostile(own_suite, finish_experiment, tmp_path):
    """A board whose row, error, commit and device are hostile."""
    suite = own_suite(Entry(row=(HOSTILE,), columns={"a": "top1_percent"}, experiment=SMALL))
    finish_experiment(SMALL, 50.0, commit=HOSTILE, device=HOSTILE)
    finish_experiment(SMALL.with_seed(1), 50.0).result_path.unlink()
    failed = finish_experiment(SMALL.with_seed(1), 50.0)
    failed.result_path.unlink()
    failed.write_failure(Failure(kind="error", reason=HOSTILE, log_path=HOSTILE))
    return make_leaderboard(suite, "laptop", tmp_path)


def test_hostile_words_are_text_on_the_page_and_steer_nothing(hostile, tmp_path):
    page = render_suite_page(hostile, {})
    elements = Elements(page)
    scripts = [attributes for name, attributes in elements.found if name == "script"]
    assert [found for found in scripts if not found] == [{}] * 3  # ours: embedded, tables, runs
    assert all(found.get("type") == "application/gzip" for found in scripts if found)
    assert "<script>alert(1)</script>\\x1b[2J\\u202e=cmd" in elements.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)


def test_hostile_words_are_harmless_in_markdown_csv_latex_and_in_what_the_page_carries(hostile, tmp_path):
    markdown = re.sub("`[^`]*`", "", render_markdown(hostile))  # what is code is read as it stands
    assert not re.search(r"<script|\x1b|\u202e|[^\\]\[a[^\\]*\]\(", markdown)
    (_, row) = csv.reader(io.StringIO(render_csv(hostile.board())))
    assert row[0].startswith("<script>")  # no formula: it does not begin with =
    assert "\x1b" not in row[0]
    assert r"\textless{}script\textgreater{}" in render_latex(hostile.board(), HOSTILE)
    content = re.search('data-embedded="runs">([^<]*)<', render_suite_page(hostile, {}))[1]
    assert b"\\\\x1b[2J" in gzip.decompress(base64.b64decode(content))


def test_a_page_loads_nothing_sends_nothing_and_has_no_other_base():
    policy = re.search('Policy" content="([^"]*)"', render_index_html([], []))[1]
    found = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy).split(";"))
    assert {name: found.get(name) for name in ("default-src", "base-uri", "form-action")} == dict.fromkeys(
        ("default-src", "base-uri", "form-action"), "'none'"
    )


def test_the_published_findings_stand_on_their_page_word_by_word_with_the_files_that_they_name():
    written = (PUBLISHED / "FINDINGS.md").read_text()
    named = re.sub(r"\[([^]]*)\]\(([^)]*)\)", r"\1 (leaderboards/published/\2)", written)  # for links
    shown = Elements(render_findings_html().partition('<div class="findings">')[2]).text
    assert re.findall(r"\w+", shown) == re.findall(r"\w+", named)[5:]  # its title stands above
    for place in re.findall(r"\(leaderboards/(published/[^)]+)\)", shown):
        assert (PUBLISHED.parent / place).is_file(), place


def test_a_users_own_style_does_not_change_a_drawn_table(table2, fill, tmp_path):
    fill(1)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    table = view_table(leaderboard.board(), RunReader(leaderboard), {})
    expected = draw_table(table, "caption")
    with matplotlib.rc_context({"font.family": "serif", "pdf.compression": 0, "text.color": "red"}):
        assert draw_table(table, "caption") == expected


def test_latex_reads_no_character_as_a_command():
    assert escape_latex("50 % of $x_1 & {y}#~^\\") == (
        r"50 \% of \$x\_1 \& \{y\}\#\textasciitilde{}\textasciicircum{}\textbackslash{}"
    )


def test_a_latex_table_has_the_rules_of_booktabs_and_the_papers_numbers_below_ours(table2, fill, tmp_path):
    fill(3)
    lines = render_latex(make_leaderboard(table2, "laptop", tmp_path).board(), "Table 2").splitlines()
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    row = lines.index(r"\midrule") + 1
    assert lines[row].startswith(r"5 & 40.5 $\pm$ 1.2 & ")
    assert lines[row + 1].startswith(r"paper & 34.8 & ")
    assert {line.count(" & ") for line in lines if line.endswith(r"\\")} == {6}


def test_the_numbers_of_a_column_stand_on_one_scale():
    places = scale({("low",): Plot(40.0, paper=45.0), ("high",): Plot(60.0), ("none",): Plot(None, paper=99.0)})
    assert (places[("low",)].ours, places[("low",)].paper, places[("high",)].ours) == (5.0, 27.5, 95.0)
    assert ("none",) not in places


def test_away_from_the_papers_scale_a_plot_is_of_the_effect(table2, fill, tmp_path):
    fill(2)
    board = make_leaderboard(table2, "laptop", tmp_path).board()
    assert plot_column(board, "deit_top1") == {}  # the baseline
    plots = plot_column(board, "convit_top1")
    by_effect = sorted(plots, key=lambda row: plots[row].ours)
    assert by_effect[-1] == ("5",)  # 50.125 - 40.25 is the largest
    assert all(plot.zero == plots[("5",)].zero for plot in plots.values())


def test_what_would_make_a_page_too_large_is_left_out():
    found = compress_within(400, {"large": bytes(range(256)) * 2, "small": b"x" * 1000})  # which compresses well
    assert {name: gzip.decompress(base64.b64decode(content)) for name, content in found.items()} == {
        "small": b"x" * 1000
    }


def test_no_page_exceeds_its_size_and_what_is_left_out_is_said(table2, fill, tmp_path, monkeypatch):
    fill(1)
    suite = table2.model_copy(update={"footnotes": ("a word, " * 60_000,)})  # as where much has failed
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    noise = random.Random(0).randbytes(550_000)
    page = render_suite_page(
        leaderboard, {"figure2a": {"svg": b'<svg width="72pt" height="36pt">' + noise, "pdf": b"small"}}
    )
    text = " ".join(Elements(page).text.split())
    assert 900_000 < len(page.encode()) < suite_page.MOST_BYTES
    assert "Left out, as this page would be too large: laptop.figure2a.svg. The files beside it" in text
    assert "Too large for this page: laptop.figure2a.svg lies beside it" in text
    assert 'data-embedded="laptop.figure2a.pdf"' in page
    assert 'data-embedded="runs"' in page
    monkeypatch.setattr(suite_page, "MOST_BYTES", 1)
    page = render_suite_page(leaderboard, {})
    elements = Elements(page)
    used = {name for _, attributes in elements.found for name in attributes}
    assert not used & {"data-embedded", "data-runs", "data-download", "data-chart", "data-picture"}
    assert not re.search("Point at a number|Download:", elements.text)
    told = re.search(r"would be too large: (.*)\. The files", elements.text)[1].split(", ")
    tables = [f"laptop.{table}.{kind}" for table in leaderboard.tables for kind in ("csv", "tex", "svg", "pdf")]
    assert sorted(told) == sorted(["chart-figure2a", "runs", *tables])


def test_each_cell_tells_its_runs_and_the_command_that_makes_them_again(table2, finish, tmp_path):
    for seed in (0, 2):
        finish("deit", "10", seed, 40.0 + seed)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    told = RunReader(leaderboard).of_cell(leaderboard.board().cells[("10",), "deit_top1"])
    lines = [dict(zip(COLUMNS, run, strict=True)) for run in told.runs]
    assert [(line["seed"], line["top-1 %"], line["commit"]) for line in lines] == [
        ("0", "40.00", "0" * 10), ("2", "42.00", "0" * 10)
    ]  # fmt: skip
    *_, only = told.command.partition(" --only ")
    chosen = select(table2.profile("laptop").experiments(), only.split())
    assert [(one.model, one.train_fraction) for one in chosen] == [("deit", 0.1)]


def test_the_command_of_a_custom_models_cell_enters_it_again_in_a_suite_of_ones_own(finish_experiment, tmp_path):
    model = tmp_path / "my vit.py"
    model.write_text("class Mine: ...")
    mine = parse_custom_model([f"mine={model}:Mine", "dim=8", "flat=true", "recipe.learning_rate=0.2"])
    other = parse_custom_model(["other=deit_micro", "depth=2"])
    record_custom_models(tmp_path, [mine, other])
    suite = get_suite(f"{EXAMPLES / 'my_suite.py'}:SUITE")
    entered = with_custom_models(suite, [mine, other]).profile("laptop")
    for experiment in entered.experiments():
        finish_experiment(experiment, 40.0)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    reader, cells = RunReader(leaderboard), leaderboard.board().cells
    measured = {
        column: cell for (row, column), cell in cells.items() if row == ("5 %",) and cell.provenance.experiments
    }
    told = {column: reader.of_cell(cell) for column, cell in measured.items()}
    chosen = {}
    for column, cell in told.items():
        _, _, *words = shlex.split(cell.command)
        chosen[column] = GridRequest.of(parse_options(words))
    for entry in entered.entries:
        for column in entry.columns if entry.row == ("5 %",) else ():
            assert entry.experiment in chosen[column].experiments
    assert {column: [c.name for c in grid.custom_models] for column, grid in chosen.items()} == {
        "deit": [], "convit": [], "mine_top1": ["mine"], "other_top1": ["other"]
    }  # fmt: skip


def test_of_a_search_each_seed_tells_the_run_that_was_chosen_for_it(own_suite, finish_experiment, tmp_path):
    other = SMALL.model_copy(update={"model": "other"})
    for seed, (first, second) in enumerate([(50.0, 10.0), (50.0, 90.0), (50.0, 60.0)]):
        finish_experiment(SMALL.with_seed(seed), first)
        finish_experiment(other.with_seed(seed), second)
    entry = Entry(row=("x",), columns={"a": "top1_percent"}, experiment=SMALL, alternatives=(other,))
    leaderboard = make_leaderboard(own_suite(entry), "laptop", tmp_path)
    told = RunReader(leaderboard).of_cell(leaderboard.board().cells[("x",), "a"])
    # seed 0 by the others' means, 50 and 75; seed 1 by 50 and 35; seed 2 by 50 and 50, of which the first is taken
    assert [run[1] for run in told.runs] == ["10.00", "50.00", "50.00"]
    assert told.run == f"{SMALL.configuration} and {other.configuration}"
    *_, only = told.command.partition(" --only ")
    chosen = select([SMALL, other, SMALL.model_copy(update={"model": "third"})], only.split())
    assert {one.configuration for one in chosen} == {SMALL.configuration, other.configuration}


def test_learning_curves_have_the_seeds_band_and_at_the_papers_scale_its_accuracy(table2, finish_experiment, tmp_path):
    for seed in range(2):
        run = finish_experiment(table2.profile("paper").entries[0].experiment.with_seed(seed), 40.0)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "top1_percent": 20.0 * step + seed})
    (_, curves) = find_charts(make_leaderboard(table2, "paper", tmp_path))
    values = curves.spec["data"]["values"]
    ours = [(point["x"], point["low"], point["ours"], point["high"]) for point in values if "ours" in point]
    assert ours == [(0.5, 20.0, 20.5, 21.0), (1.0, 40.0, 40.5, 41.0)]
    assert [(point["x"], point["paper"]) for point in values if "paper" in point] == [(0.5, 34.8), (1.0, 34.8)]


def test_of_a_cell_with_a_failed_seed_no_learning_curve_is_charted_as_none_is_drawn(table2, finish, tmp_path):
    for seed in range(2):
        run = finish("deit", "5", seed, 40.0)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "loss": 2.0 / step})
    run.result_path.write_text("{")
    assert "learning_curves" not in [chart.name for chart in find_charts(make_leaderboard(table2, "laptop", tmp_path))]


def test_a_papers_line_figure_is_a_chart_of_ours_with_intervals_and_the_papers(table2, fill, tmp_path):
    fill(3)
    (figure,) = find_charts(make_leaderboard(table2, "laptop", tmp_path))
    points = [point for point in figure.spec["data"]["values"] if point["line"] == "DeiT"]
    assert [(point["x"], point["ours"], point["paper"]) for point in points][:2] == [
        (5.0, 40.5, 34.8),
        (10.0, 48.5, 48.0),
    ]
    assert all(point["low"] < point["ours"] < point["high"] for point in points)


def test_what_was_logged_once_is_no_learning_curve_and_the_one_metric_left_names_its_axis(table2, finish, tmp_path):
    run = finish("deit", "5", 0, 40.0)
    for step in (1, 2):
        run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "loss": 2.0 / step})
    run.append_metrics({"step": 2, "num_steps": 2, "epoch": 1.0, "top1_percent": 40.0})
    (_, curves) = find_charts(make_leaderboard(table2, "laptop", tmp_path))
    assert curves.metrics == ("Training loss",)
    assert {layer["encoding"]["y"]["title"] for layer in curves.spec["layer"]} == {"Training loss"}
