import csv
import io

import pytest

from leaderboards.boards import make_boards
from leaderboards.csv_files import LONG_COLUMNS, render_long_csv
from leaderboards.markdown import render_markdown


def lines_of(suite, profile, store):
    lines = list(csv.DictReader(io.StringIO(render_long_csv(make_boards(suite, profile, store)))))
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
    assert [line[name] for name in ("table", "metric", "n", "planned", "status", "rank", "interval_method")] == [
        "convit_table2", "top1_percent", "3", "3", "done", "2", "t"
    ]  # fmt: skip
    half_width = 4.302652729911275 / 3**0.5
    numbers = {"mean": 30, "sd": 1, "low": 30 - half_width, "high": 30 + half_width, "paper": 34.8, "difference": -4.8}
    assert {name: float(line[name]) for name in numbers} == pytest.approx(numbers)
    assert (line["device_hours"], line["images_per_s"], line["commits"], line["chosen"]) == ("7.5", "101", "0" * 10, "")


def test_at_the_papers_scale_the_long_csv_says_whether_its_number_was_reached(on_paper, tmp_path):
    lines = lines_of(on_paper, "paper", tmp_path)
    deit, convit, gap = (lines["5", column] for column in ("deit_top1", "convit_top1", "top1_gap_percent"))
    t = -4.8 * 3**0.5
    assert float(deit["p_value"]) == pytest.approx((1 + t / (t * t + 2) ** 0.5) / 2)  # of 2 degrees, one-sided
    assert [line["reached"] for line in (deit, convit, gap, lines["10", "deit_top1"])] == ["no", "yes", "", ""]


def test_at_another_scale_nothing_is_tested(table2, fill, tmp_path):
    fill(3)
    assert {line["reached"] for line in lines_of(table2, "laptop", tmp_path).values()} == {""}


def test_the_markdown_says_what_was_reached_and_what_that_means(on_paper, tmp_path):
    markdown = render_markdown(make_boards(on_paper, "paper", tmp_path))
    row = next(line for line in markdown.splitlines() if line.startswith("|") and "30.0" in line)
    cells = [text.strip() for text in row.split("|")[2:-1]]
    assert cells[:4] == ["30.0 ± 2.5 (n=3) #2", "34.8", "-4.8", "no"]
    assert cells[7] == "yes"
    assert "*not significantly below*" in markdown


def test_a_missing_cell_has_a_line_without_numbers(table2, tmp_path):
    line = lines_of(table2, "laptop", tmp_path)["5", "deit_top1"]
    assert (line["mean"], line["low"], line["rank"], line["status"], line["n"]) == ("", "", "", "missing", "0")


def test_ten_seeds_show_the_ends_of_a_bootstraps_interval(table2, finish, tmp_path):
    for seed in range(10):
        finish("deit", "5", seed, 40.0 + seed**2 / 10)
    boards = make_boards(table2, "laptop", tmp_path)
    cell = boards.board().cells[("5",), "deit_top1"]
    assert cell.interval.method == "bca"
    assert f"42.9 ({cell.interval.low:.1f} to {cell.interval.high:.1f}) (n=10)" in render_markdown(boards)
