import csv
import io
from dataclasses import replace

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.text.csv_files import render_csv, render_long_csv
from leaderboards.text.markdown import render_markdown
from suite.papers import find_table, get_suite
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe
from suite.store.results import Failure

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
SMALL = Experiment(model="small", dataset="cifar10", image_size=32, recipe=RECIPE)


def csv_of(leaderboard):
    return list(csv.reader(io.StringIO(render_csv(leaderboard.board()))))


def table_rows(markdown):
    return [[text.strip() for text in line.split("|")[1:-1]] for line in markdown.splitlines() if line.startswith("|")]


def test_the_csv_has_the_papers_header_row_keys_and_decimals(table2, fill, tmp_path):
    fill(3)
    lines = csv_of(make_leaderboard(table2, "laptop", tmp_path))
    paper = list(csv.reader(find_table("convit_table2").open()))
    assert lines[0] == paper[0]
    assert [line[0] for line in lines] == [line[0] for line in paper]
    # DeiT 40.0, 40.5, 41.0; ConViT 50.0, 50.25, 51.0; top-5 is half of it plus 50
    assert lines[1] == ["5", "40.5", "50.4", "24", "70.2", "75.2", "7"]


def test_the_csv_of_the_papers_values_is_the_papers_csv(table2, finish, tmp_path):
    paper = find_table("convit_table2").read_text().splitlines()
    for row in list(csv.DictReader(paper)):
        for family in ("deit", "convit"):
            finish(family, row["train_size_percent"], 0, float(row[f"{family}_top1"]))
    ours = csv_of(make_leaderboard(table2, "laptop", tmp_path))
    assert [line[:3] for line in ours] == [line.split(",")[:3] for line in paper]


def test_a_place_without_value_is_empty_in_the_csv(table2, finish, tmp_path):
    finish("deit", "5", 0, 40.0)
    lines = csv_of(make_leaderboard(table2, "laptop", tmp_path))
    assert lines[1] == ["5", "40.0", "", "", "70.0", "", ""]
    assert lines[2] == ["10", "", "", "", "", "", ""]


def test_a_failed_cell_is_empty_in_the_csv_and_marked_in_the_markdown(table2, finish, tmp_path):
    finish("deit", "5", 0, 40.0)
    finish("deit", "5", 1, 99.0).result_path.write_text('{"top1_percent": 99.0')
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    assert csv_of(leaderboard)[1][1] == ""
    assert "40.0 **failed 1/2**" in render_markdown(leaderboard)


def test_the_csv_ends_lines_with_a_line_feed_alone(table2, tmp_path):
    assert "\r" not in render_csv(make_leaderboard(table2, "laptop", tmp_path).board())


def test_a_markdown_row_shows_ours_the_papers_and_their_difference_at_the_papers_scale(
    table2, finish_experiment, tmp_path
):
    for entry in table2.profiles["paper"].entries[:2]:
        for seed in range(3):
            finish_experiment(entry.experiment.with_seed(seed), 50 + seed / 2)
    rows = table_rows(render_markdown(make_leaderboard(table2, "paper", tmp_path)))
    assert rows[0][:4] == ["Images in training set, %", "DeiT top-1, %: ours", "paper", "diff"]
    assert rows[2][:4] == ["5", "50.5 ± 1.2 (n=3) #1-2", "34.8", "+15.7"]


def test_away_from_the_papers_scale_a_row_shows_effects_beside_the_papers_and_no_difference(table2, fill, tmp_path):
    fill(3)
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    rows = table_rows(markdown)
    assert rows[0][:7] == ["Images in training set, %", *["DeiT top-1, %: ours", "paper", "effect"],
                           *["ConViT top-1, %: ours", "paper", "effect"]]  # fmt: skip
    # 50, 50.25, 51 less 40, 40.5, 41 seed by seed; the paper's 47.8 - 34.8
    assert rows[2][:7] == [
        "5", "40.5 ± 1.2 (n=3) #2", "34.8", "baseline", "50.4 ± 1.3 (n=3) #1", "47.8", "+9.92 ± 0.36 (+13.0)"
    ]  # fmt: skip
    assert "+5.7" not in markdown
    assert "+2.6" not in markdown


def test_one_seed_shows_no_interval(table2, fill, tmp_path):
    fill(1)
    rows = table_rows(render_markdown(make_leaderboard(table2, "laptop", tmp_path)))
    assert rows[2][1] == "40.0 (n=1)"


def test_what_is_not_done_is_marked_and_counted(table2, finish, tmp_path):
    finish("deit", "5", 0, 40.0)
    finish("deit", "10", 0, 40.0)
    finish("deit", "10", 1, 41.0)
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    rows = table_rows(markdown)
    assert rows[2][1:3] == ["40.0 **partial 1/2**", "34.8"]
    assert rows[4][1:4] == ["**missing 0/2**", "66.1", "baseline"]
    assert "30 cells: 2 done, 2 partial, 0 failed, 0 not counted, 26 missing." in markdown
    assert "DeiT top-1: 2 of every cell, as many as the fullest one has." in markdown


def test_a_failed_run_is_listed_once_with_its_reason_and_log(table2, finish, tmp_path):
    run = finish("convit", "30", 0, 40.0)
    run.result_path.unlink()
    run.write_failure(Failure(kind="error", reason="the loss\nis nan", log_path="logs/9.txt"))
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    assert "- 30, ConViT top-1; ConViT top-5: seed 0: the loss is nan\n  See `logs/9.txt`\n" in markdown
    assert markdown.count("the loss is nan") == 1


def test_a_corrupt_result_does_not_hide_the_other_cells(table2, fill, finish, tmp_path):
    fill(1)
    run = finish("deit", "5", 0, 40.0)
    run.result_path.write_text("{")
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    assert "26 done, 0 partial, 4 failed, 0 not counted, 0 missing" in markdown
    assert str(run.result_path) in markdown


@pytest.mark.parametrize("profile", ["laptop", "smoke"])
def test_a_profile_of_another_scale_says_so_before_its_numbers(table2, tmp_path, profile):
    markdown = render_markdown(make_leaderboard(table2, profile, tmp_path))
    said = markdown.index(f"Profile {profile}: another scale than the paper's, not comparable with its numbers.")
    assert said < markdown.index("| Images in training set, %")
    assert table2.profile(profile).scale_note in markdown


def test_the_papers_own_scale_is_not_called_another(table2, tmp_path):
    assert "another scale" not in render_markdown(make_leaderboard(table2, "paper", tmp_path))


def test_the_legend_says_whether_seeds_share_their_training_images(tmp_path):
    suite = get_suite("sample_efficiency")
    legends = {name: render_markdown(make_leaderboard(suite, name, tmp_path)) for name in ("laptop", "desktop")}
    assert "on this test set and on this\nsubset of the training images: Student" in legends["laptop"]
    assert "on this test set but not on\nthe training images, which each seed draws anew: Student" in legends["desktop"]


def test_the_markdown_names_the_paper_the_question_and_the_footnotes(table2, tmp_path):
    markdown = render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    assert markdown.startswith("# table2: ours beside ConViT, Table 2\n\nDoes a convolutional prior help?\n")
    assert markdown.endswith("## Notes\n\n- a footnote\n")


def test_columns_line_up_as_plain_text(table2, fill, tmp_path):
    fill(3)
    lines = [
        line for line in render_markdown(make_leaderboard(table2, "laptop", tmp_path)).splitlines() if line[:1] == "|"
    ]
    bars = [[i for i, character in enumerate(line) if character == "|"] for line in lines]
    assert len({tuple(places) for places in bars}) == 2  # two tables of three columns each


def test_columns_that_no_entry_fills_are_named_and_left_out(table2, tmp_path):
    table = table2.tables[0].model_copy(update={"derived": table2.tables[0].derived[:1]})
    suite = table2.model_copy(update={"tables": (table,)})
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    assert leaderboard.board().columns == ["deit_top1", "convit_top1", "top1_gap_percent", "deit_top5", "convit_top5"]
    assert "does not fill: Relative top-5 gain." in render_markdown(leaderboard)


def test_a_small_models_size_is_not_rounded_to_nothing(own_suite, finish_experiment, tmp_path):
    entry = Entry(row=("small",), columns={"a": "num_parameters_millions"}, experiment=SMALL)
    suite = own_suite(entry)
    for seed in range(2):
        finish_experiment(SMALL.with_seed(seed), 50, num_parameters=1234)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    assert table_rows(render_markdown(leaderboard))[2] == ["small", "0.0012 (n=2)"]  # and no interval of a fixed number
    assert csv_of(leaderboard)[1][:2] == ["small", "0.00"]


def test_a_headline_without_interval_says_of_how_many_seeds_it_is(table2, fill, tmp_path):
    fill(1)
    assert "5 %: +10.0 points, n=1 (paper: +13.0)." in render_markdown(make_leaderboard(table2, "laptop", tmp_path))
    fill(3)
    assert "5 %: +9.92 ± 0.36 points (paper: +13.0)." in render_markdown(make_leaderboard(table2, "laptop", tmp_path))


def test_ranks_are_explained_by_table_where_they_differ(table2, fill, tmp_path):
    fill(3)
    second = table2.tables[0].model_copy(update={"name": "convit_table1", "item": "Table 1", "ranked": "in_columns"})
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    board = leaderboard.board()
    leaderboard = replace(leaderboard, tables={**leaderboard.tables, "convit_table1": replace(board, table=second)})
    markdown = render_markdown(leaderboard)
    assert "\n\nTable 2: #1-3: between the best and the third of a row," in markdown
    assert "\n\nTable 1: #1-3: between the best and the third of a column," in markdown


def test_a_best_accuracy_says_of_how_many_evaluations_it_is_the_maximum(own_suite, finish_experiment, tmp_path):
    columns = {"a": "top1_percent", "b": "best_top1_percent"}
    suite = own_suite(Entry(row=("deit",), columns=columns, experiment=SMALL))
    for seed, fields in enumerate(({"num_evaluations": 300}, {"num_evaluations": 100}, {})):
        finish_experiment(SMALL.with_seed(seed), 40, **fields)
    leaderboard = make_leaderboard(suite, "laptop", tmp_path)
    expected = "- deit, B: the maximum over a run's evaluations, of a number not recorded or 100 or 300\n"
    assert f"## Best of several evaluations\n\n{expected}" in render_markdown(leaderboard)
    assert {line["num_evaluations"] for line in csv.DictReader(render_long_csv(leaderboard).splitlines())} == {
        "0 100 300"
    }
