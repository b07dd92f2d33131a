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
from urllib.parse import unquote
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure as Canvas

from launchers.command.command_line import parse_options
from launchers.command.custom_models import parse_custom_model
from launchers.command.grid_request import GridRequest
from launchers.core.plan import select
from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.budget import estimate_cost
from leaderboards.figures.parts.style import write
from leaderboards.judged_claims import judge
from leaderboards.published_boards import PUBLISHED
from leaderboards.report import suite_page
from leaderboards.report.compressed import as_source, compress, keep_within
from leaderboards.report.effects import view_boards_effects
from leaderboards.report.findings_page import render_findings_html
from leaderboards.report.index_page import render_index_html
from leaderboards.report.latex import escape_latex, render_latex
from leaderboards.report.pictures.learning_curves import (
    draw_learning_curves,
    find_learning_curves,
    name_configurations,
)
from leaderboards.report.pictures.plots import Plot, plot_column, scale
from leaderboards.report.runs_behind import COLUMNS, METRIC, RunReader
from leaderboards.report.suite_page import render_suite_page
from leaderboards.report.table_files import draw_table
from leaderboards.report.tables import view_table
from leaderboards.survey import IndexLine
from leaderboards.text.csv_files import render_csv
from leaderboards.text.labels import label
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
    found = keep_within(400, {"large": "x" * 400, "small": compress(b"x" * 1000)})
    assert {name: gzip.decompress(base64.b64decode(content)) for name, content in found.items()} == {
        "small": b"x" * 1000
    }


def test_no_page_exceeds_its_size_and_what_is_left_out_is_said(table2, fill, tmp_path, monkeypatch):
    fill(1)
    suite = table2.model_copy(update={"footnotes": ("a word, " * 110_000,)})  # as where much has failed
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    noise = base64.b64encode(random.Random(0).randbytes(550_000))
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
    assert not used & {"data-embedded", "data-runs", "data-download", "data-file"}
    assert not re.search("Point at a number|Download:", elements.text)
    told = re.search(r"would be too large: (.*)\. The files", elements.text)[1].split(", ")
    tables = [f"laptop.{table}.{kind}" for table in leaderboard.tables for kind in ("csv", "tex", "svg", "pdf")]
    assert sorted(told) == sorted(["runs", *tables])


def test_each_cell_tells_its_runs_and_the_command_that_makes_them_again(table2, finish, tmp_path):
    for seed in (0, 2):
        finish("deit", "10", seed, 40.0 + seed)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    told = RunReader(leaderboard).of_cell(leaderboard.board().cells[("10",), "deit_top1"])
    lines = [dict(zip(COLUMNS, run, strict=True)) for run in told.runs]
    assert [(line["seed"], line[METRIC], line["commit"]) for line in lines] == [
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


def curves_of(leaderboard):
    return find_learning_curves(leaderboard, name_configurations(leaderboard))


def test_learning_curves_are_of_all_seeds_and_drawn_for_print_as_for_a_screen(table2, finish_experiment, tmp_path):
    for seed in range(2):
        run = finish_experiment(table2.profile("paper").entries[0].experiment.with_seed(seed), 40.0)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "top1_percent": 20.0 * step + seed})
    leaderboard = make_leaderboard(table2, "paper", tmp_path)
    (curve,) = curves_of(leaderboard)["top1_percent"].values()
    assert [*zip(curve.epochs, curve.low, curve.mean, curve.high, strict=True)] == [
        (0.5, 20.0, 20.5, 21.0), (1.0, 40.0, 40.5, 41.0)
    ]  # fmt: skip
    drawn = draw_learning_curves(leaderboard)
    assert drawn["svg"].startswith(b"<?xml")
    assert drawn["pdf"].startswith(b"%PDF")
    assert f'src="{as_source(drawn["svg"])}"' in render_suite_page(leaderboard, {})


def test_of_a_cell_with_a_failed_seed_no_learning_curve_is_drawn(table2, finish, tmp_path):
    for seed in range(2):
        run = finish("deit", "5", seed, 40.0)
        for step in (1, 2):
            run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "loss": 2.0 / step})
    run.result_path.write_text("{")
    assert draw_learning_curves(make_leaderboard(table2, "laptop", tmp_path)) == {}


def test_what_was_logged_once_is_no_learning_curve(table2, finish, tmp_path):
    run = finish("deit", "5", 0, 40.0)
    for step in (1, 2):
        run.append_metrics({"step": step, "num_steps": 2, "epoch": step / 2, "loss": 2.0 / step})
    run.append_metrics({"step": 2, "num_steps": 2, "epoch": 1.0, "top1_percent": 40.0})
    assert list(curves_of(make_leaderboard(table2, "laptop", tmp_path))) == ["loss"]


def test_a_cells_runs_show_the_metric_of_the_cell(table2, fill, tmp_path):
    fill(1)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    reader, cells = RunReader(leaderboard), leaderboard.board().cells
    of_top1, of_top5 = (reader.of_cell(cells[("5",), f"deit_{metric}"]) for metric in ("top1", "top5"))
    assert (of_top1.metric, of_top5.metric) == ("Top-1 accuracy, %", "Top-5 accuracy, %")
    assert of_top1.runs[0][1] == f"{cells[('5',), 'deit_top1'].mean:.2f}"
    assert of_top5.runs[0][1] == f"{cells[('5',), 'deit_top5'].mean:.2f}"


def test_ours_and_the_papers_effects_never_share_an_axis_away_from_its_scale(table2, fill, tmp_path):
    fill(3)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    lines = view_boards_effects(leaderboard).lines
    assert [line["name"] for line in lines] == ["5", "10", "30", "50", "100"]
    assert lines[0]["paper"] == "+13.0"
    assert all(line["plot"].paper is None for line in lines)
    papers = [line["paper_plot"].ours for line in lines]
    assert max(papers) == papers[0] == 95.0  # the paper's own scale
    assert max(line["plot"].high for line in lines) == 95.0
    board = leaderboard.board()
    assert all(plot.paper is None for column in board.columns for plot in plot_column(board, column).values())


def test_the_index_asks_its_first_question_first_and_then_goes_by_paper(table2, fill, tmp_path):
    fill(3)
    suites = [get_suite(name) for name in ("cmhsa_cifar100", "cordonnier_heads", "convit_psa", "sample_efficiency")]
    found = make_leaderboard(table2, "laptop", tmp_path)
    lines = [IndexLine(suite, "laptop", error="x") for suite in suites[:-1]]
    lines.append(IndexLine(suites[-1], "laptop", found, estimate_cost(found.profile, found.collection)))
    page = render_index_html(lines, judge(lambda name: found if name == "sample_efficiency" else None, "laptop"))
    order = sorted(suites, key=lambda suite: html.unescape(page).index(suite.question))
    assert [suite.name for suite in order] == ["sample_efficiency", "cordonnier_heads", "convit_psa", "cmhsa_cifar100"]
    text = " ".join(Elements(page).text.split())
    assert "ConViT over DeiT on 5 % of the images: +9" in text.partition("Questions and answers")[0]
    assert "the paper, at its own scale: +13.0" in text


@pytest.mark.parametrize(
    ("name", "metric", "expected"),
    [
        ("top1", "top1_percent", "Top-1 accuracy, %"), ("deit_top1", "top1_percent", "DeiT top-1, %"),
        ("top1_gap_percent", "", "Relative top-1 gain, %"), ("train_size_percent", "", "Images in training set, %"),
        ("vit_s_h16_change", "", "ViT-S, 16 heads change, points"), ("accuracy", "top1_fraction", "Accuracy, 0 to 1"),
        ("gain_points", "", "Gain, points"), ("num_heads", "", "Heads"),
    ],
)  # fmt: skip
def test_labels_are_written_for_people(name, metric, expected):
    assert label(name, metric) == expected


def test_a_picture_keeps_what_is_drawn_and_a_large_one_is_a_png_in_few_colours():
    canvas = Canvas(figsize=(3, 2))
    canvas.text(0.1, 0.5, 'a < "b" & %#')
    svg, png = (write(canvas, kind) for kind in ("svg", "png"))
    text = unquote(as_source(svg, png).removeprefix("data:image/svg+xml,"))
    drawn = ElementTree.fromstring(text)
    uses = [one.attrib["{http://www.w3.org/1999/xlink}href"][1:] for one in drawn.iter() if one.tag.endswith("use")]
    assert len(uses) == len('a < "b" & %#')
    assert set(uses) <= {one.attrib.get("id") for one in drawn.iter()}
    for number in range(400):
        canvas.text(0.1, number / 400, "many letters " * 4, fontsize=2)
    large = as_source(write(canvas, "svg"), write(canvas, "png"))
    assert large.startswith("data:image/png;base64,")
