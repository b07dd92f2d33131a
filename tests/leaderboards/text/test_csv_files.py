import csv
import io

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.report.runs_behind import COLUMNS, RunReader
from leaderboards.text.csv_files import LONG_COLUMNS, render_accounting, render_long_csv
from leaderboards.text.markdown import render_markdown
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)


def lines_of(suite, profile, store):
    lines = list(csv.DictReader(io.StringIO(render_long_csv(make_leaderboard(suite, profile, store)))))
    return {(line["row"], line["column"]): line for line in lines}


@pytest.fixture
def on_paper(table2, finish_experiment):
    """Three seeds of the first row at the paper's scale: DeiT far below its 34.8, ConViT about its 47.8."""
    for entry in table2.profile("paper").entries[:2]:
        for seed, value in enumerate((30.0, 31.0, 29.0) if entry.experiment.model == "deit" else (48.0, 47.0, 46.5)):
            finish_experiment(entry.experiment.with_seed(seed), value, device_hours=2.5, images_per_s=100.0 + seed)
    return table2


def test_the_long_csv_has_a_line_per_cell_and_every_field(on_paper, tmp_path):
    lines = lines_of(on_paper, "paper", tmp_path)
    assert len(lines) == 30
    line = lines["5", "deit_top1"]
    assert tuple(line) == LONG_COLUMNS
    assert [line[name] for name in ("table", "metric", "n", "planned", "status", "best_rank", "worst_rank")] == [
        "convit_table2", "top1_percent", "3", "3", "done", "2", "2"
    ]  # fmt: skip
    half_width = 4.302652729911275 / 3**0.5
    numbers = {"mean": 30, "sd": 1, "low": 30 - half_width, "high": 30 + half_width, "paper": 34.8, "difference": -4.8}
    assert {name: float(line[name]) for name in numbers} == pytest.approx(numbers)
    assert (line["device_hours"], line["images_per_s"], line["commits"], line["chosen"]) == ("7.5", "101", "0" * 10, "")


def test_at_the_papers_scale_each_accuracy_has_its_verdict(on_paper, tmp_path):
    lines = lines_of(on_paper, "paper", tmp_path)
    deit, convit, gap = (lines["5", column] for column in ("deit_top1", "convit_top1", "top1_gap_percent"))
    t = (4.8 - 0.05) / (1 / 3 + 1) ** 0.5  # against a single seed, printed to a tenth
    p = 1 - t / (t * t + 2) ** 0.5  # of 2 degrees, two-sided
    assert float(deit["p_value"]) == pytest.approx(4 / 3 * p)  # the second largest of the four that are tested
    verdicts = [line["verdict"] for line in (deit, convit, gap, lines["10", "deit_top1"])]
    assert verdicts == ["undecided", "undecided", "", ""]


def test_at_another_scale_nothing_is_judged(table2, fill, tmp_path):
    fill(3)
    assert {line["verdict"] for line in lines_of(table2, "laptop", tmp_path).values()} == {""}


def test_the_markdown_has_the_verdicts_and_says_what_they_mean(on_paper, finish_experiment, tmp_path):
    deit = on_paper.profile("paper").entries[0].experiment
    for seed in range(3, 8):
        finish_experiment(deit.with_seed(seed), 30.0)
    markdown = render_markdown(make_leaderboard(on_paper, "paper", tmp_path, range(3)))
    row = next(line for line in markdown.splitlines() if line.startswith("|") and "30.00" in line)
    cells = [text.strip() for text in row.split("|")[2:-1]]
    assert cells[:4] == ["30.00 ± 0.45 (n=8) #2", "34.8", "-4.8", "contradicted"]
    assert cells[7] == "undecided"
    assert "reproduced (the 90 % interval lies within one point of it)" in markdown


def test_a_missing_cell_has_a_line_without_numbers(table2, tmp_path):
    line = lines_of(table2, "laptop", tmp_path)["5", "deit_top1"]
    assert (line["mean"], line["low"], line["best_rank"], line["status"], line["n"]) == ("", "", "", "missing", "0")


def test_two_digits_of_the_interval_decide_the_means_decimals(table2, finish, tmp_path):
    for seed in range(10):
        finish("deit", "5", seed, 40.0 + seed**2 / 10)
        finish("convit", "5", seed, 40.0 + seed**2 / 1000)
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    assert "| 42.9 ± 2.0 (n=10)" in markdown
    assert "| 40.028 ± 0.020 (n=10)" in markdown


def test_a_best_accuracy_stands_beside_that_of_the_last_epoch(own_suite, finish_experiment, tmp_path):
    experiment = Experiment(model="deit_ti", dataset="cifar10", image_size=32, recipe=RECIPE)
    suite = own_suite(Entry(row=("deit",), columns={"a": "best_top1_percent"}, experiment=experiment))
    for seed in range(3):
        finish_experiment(experiment.with_seed(seed), 40.0, best_top1_percent=41.5 + seed, num_evaluations=6)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    assert "| 42.5 ± 2.5 (n=3, last epoch 40.0)" in render_markdown(leaderboard)
    assert next(csv.DictReader(io.StringIO(render_long_csv(leaderboard))))["last_top1_percent"] == "40"


def test_energy_and_memory_stand_with_the_costs_as_soon_as_one_run_knows_them(table2, finish_experiment, tmp_path):
    first, second, *_ = (entry.experiment for entry in table2.profile("laptop").entries)
    finish_experiment(first, 50.0)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    assert "energy_kwh" not in render_accounting(leaderboard)  # boards of older records stay as they were
    finish_experiment(second, 50.0, energy_kwh=0.125, peak_memory_gb=2.5)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    lines = list(csv.DictReader(io.StringIO(render_accounting(leaderboard))))
    assert sorted((line["energy_kwh"], line["peak_memory_gb"]) for line in lines) == [("", ""), ("0.125", "2.5")]
    cells = [cell for (row, _), cell in leaderboard.board().cells.items() if row == ("5",) and cell.provenance.runs]
    costs = {run[3:5] for cell in cells for run in RunReader(leaderboard).of_cell(cell).runs}
    assert COLUMNS[3:5] == ("kWh", "peak GB")
    assert costs <= {("unknown", "unknown"), ("0.125", "2.5")}
    assert ("unknown", "unknown") in costs
