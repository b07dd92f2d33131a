import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.text.csv_files import render_csv
from leaderboards.text.markdown import render_markdown
from leaderboards.text.terminal import print_summary
from suite.papers import get_suite
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry
from suite.spec.recipe import Recipe
from suite.spec.suite import ChangeFrom, MeanOf, RankedWithin, RelativeTo

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
BIG, SMALL = (Experiment(model=m, dataset="cifar10", image_size=32, recipe=RECIPE) for m in ("deit_b", "deit_s"))
ENTRIES = [
    Entry(row=(row,), columns={"a": "top1_percent", "b": "top5_percent"}, experiment=experiment)
    for row, experiment in (("big", BIG), ("small", SMALL))
]


@pytest.fixture
def timed(own_suite):
    return own_suite(*ENTRIES, derived=(RelativeTo(column="c", metric="lineage_train_s", baseline=("big",)),))


@pytest.fixture
def averaged(own_suite):
    return own_suite(*ENTRIES, derived=(MeanOf(column="c", columns=("a", "b")),))


@pytest.fixture
def changed(own_suite):
    return own_suite(*ENTRIES, derived=(ChangeFrom(column="c", of="a", baseline=("big",)),))


def cells_of(suite, store, seeds=None):
    cells = make_leaderboard(suite, "laptop", store, seeds).board().cells
    return cells[("big",), "c"], cells[("small",), "c"]


def test_a_ratio_is_of_the_means_of_a_metric_that_no_column_shows(timed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(100.0, 50.0), (300.0, 60.0)]):
        finish_experiment(BIG.with_seed(seed), 1, lineage_train_s=big)
        finish_experiment(SMALL.with_seed(seed), 1, lineage_train_s=small)
    big, small = cells_of(timed, tmp_path)
    assert big.mean == 1
    assert small.mean == pytest.approx(110 / 400)
    assert (small.status, small.coverage.num_done, small.comparison.ranks) == ("done", 2, None)


def test_a_ratio_to_a_row_that_is_missing_is_missing(timed, finish_experiment, tmp_path):
    finish_experiment(SMALL, 1, lineage_train_s=50.0)
    assert [(cell.status, cell.mean) for cell in cells_of(timed, tmp_path)] == [("missing", None)] * 2


def test_a_ratio_to_zero_is_undefined(timed, finish_experiment, tmp_path):
    finish_experiment(BIG, 1, lineage_train_s=0.0)
    finish_experiment(SMALL, 1, lineage_train_s=50.0)
    assert cells_of(timed, tmp_path)[1].mean is None


def test_a_mean_of_columns_needs_all_of_them(averaged, own_suite, finish_experiment, tmp_path):
    finish_experiment(BIG, 60.0)  # top-5 is half of it plus 50
    big, small = cells_of(averaged, tmp_path)
    assert (big.mean, big.status) == (70, "done")
    assert (small.mean, small.status) == (None, "missing")
    without_top5 = ENTRIES[0].model_copy(update={"columns": {"a": "top1_percent"}})
    lone = own_suite(without_top5, derived=averaged.tables[0].derived)
    assert (("big",), "c") not in make_leaderboard(lone, "laptop", tmp_path).board().cells


def test_the_interval_of_a_mean_comes_from_the_means_by_seed(averaged, finish_experiment, tmp_path):
    for seed, value in enumerate((60.0, 62.0, 64.0)):
        finish_experiment(BIG.with_seed(seed), value)
    big, _ = cells_of(averaged, tmp_path)
    assert big.interval.half_width == pytest.approx(4.302652729911275 * 1.5 / 3**0.5)


def test_the_interval_of_a_ratio_lies_about_the_ratio_of_the_means(timed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(100.0, 50.0), (300.0, 60.0), (200.0, 55.0)]):
        finish_experiment(BIG.with_seed(seed), 1, lineage_train_s=big)
        finish_experiment(SMALL.with_seed(seed), 1, lineage_train_s=small)
    _, small = cells_of(timed, tmp_path)
    assert small.estimate.standard_error == pytest.approx((55 * 100 / 200**2 - 5 / 200) / 3**0.5)
    assert (small.interval.low + small.interval.high) / 2 == pytest.approx(0.275)


def test_a_change_is_the_difference_to_the_baseline_row_which_has_none(changed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(60.0, 61.0), (62.0, 59.0), (61.0, 60.0)]):
        finish_experiment(BIG.with_seed(seed), big)
        finish_experiment(SMALL.with_seed(seed), small)
    cells = make_leaderboard(changed, "laptop", tmp_path).board().cells
    assert (("big",), "c") not in cells
    change = cells[("small",), "c"]
    assert (change.mean, change.comparison.ranks) == (-1.0, None)
    assert change.interval.half_width == pytest.approx(4.302652729911275 * 2 / 3**0.5)  # of 1, -3 and -1


def test_a_change_is_written_with_its_sign_but_in_the_csv(changed, finish_experiment, tmp_path, capsys):
    for seed, shift in enumerate((-1.0, 1.0, 0.0)):
        finish_experiment(BIG.with_seed(seed), 60.5)
        finish_experiment(SMALL.with_seed(seed), 62.0 + shift)
    leaderboard = make_leaderboard(changed, "laptop", tmp_path)
    assert "| +1.5 ± 2.5 (n=3) |" in render_markdown(leaderboard)
    print_summary(leaderboard, [], tmp_path)
    assert "+1.50" in capsys.readouterr().out
    assert render_csv(leaderboard.board()).splitlines()[2] == "small,62.00,81.00,1.50"


def test_a_change_stays_beside_its_column_where_a_table_is_broken(tmp_path):
    markdown = render_markdown(make_leaderboard(get_suite("init_datasets"), "paper", tmp_path))
    headers = [line.split("|") for line in markdown.splitlines() if line.startswith("| Method")]
    blocks = [[word.strip() for word in header if word.endswith(": ours ")] for header in headers]
    names = ("CIFAR-10", "CIFAR-100", "SVHN", "ImageNet")
    assert blocks == [[f"{name}, %: ours", f"{name} change, points: ours"] for name in names]


# -- ranks

MODELS = ("deit_ti", "deit_s", "convit_ti", "convit_s")


def entry(model, **columns):
    experiment = Experiment(model=model, dataset="cifar10", image_size=32, recipe=RECIPE)
    return Entry(row=(model,), columns=columns or {"a": "top1_percent"}, experiment=experiment)


def ranks(suite, store, column="a"):
    cells = make_leaderboard(suite, "laptop", store).board().cells
    return [cells[(model,), column].comparison.ranks for model in MODELS if ((model,), column) in cells]


@pytest.fixture
def ranked(own_suite, finish_experiment):
    """A column of four models: the first two are alike, the third is worse, the fourth the worst."""
    entries = [entry(model, a="top1_percent", b="train_s", c="top1_fraction") for model in MODELS]
    accuracies = [(80, 80.2, 80.3), (80.1, 80.3, 80.0), (70, 70.1, 70.2), (50, 50.1, 50)]
    for e, by_seed in zip(entries, accuracies, strict=True):
        for seed, accuracy in enumerate(by_seed):
            finish_experiment(e.experiment.with_seed(seed), accuracy)
    return own_suite(*entries)


def test_models_that_seeds_do_not_tell_apart_may_have_each_others_rank(ranked, tmp_path):
    assert ranks(ranked, tmp_path) == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert ranks(ranked, tmp_path, "c") == [(1, 2), (1, 2), (3, 3), (4, 4)]


def test_what_is_no_accuracy_has_no_rank(ranked, tmp_path):
    assert ranks(ranked, tmp_path, "b") == [None] * 4


def test_a_table_that_ranks_nothing_has_no_ranks(ranked, tmp_path):
    table = ranked.tables[0].model_copy(update={"ranked": "none"})
    assert ranks(ranked.model_copy(update={"tables": (table,)}), tmp_path) == [None] * 4


def test_ranks_are_shown_in_the_markdown_with_their_legend(ranked, tmp_path):
    markdown = render_markdown(make_leaderboard(ranked, "laptop", tmp_path))
    assert "70.10 ± 0.25 (n=3) #3 |" in markdown
    assert "80.17 ± 0.38 (n=3) #1-2 |" in markdown
    assert "the best and the third of a column, where" in markdown


def test_one_seed_failed_seeds_and_voids_have_no_rank(ranked, finish_experiment, tmp_path):
    first, second, third, _ = ranked.profile("laptop").entries
    finish_experiment(first.experiment.with_seed(1), 80.2).result_path.unlink()
    finish_experiment(second.experiment.with_seed(1), 80.2, protocol_version=0)
    finish_experiment(third.experiment.with_seed(2), 80.2).result_path.write_text("{")
    assert ranks(ranked, tmp_path) == [None, None, None, None]  # the fourth has nobody left to compete with


def test_in_rows_the_cells_of_a_row_compete_that_show_the_same_metric(table2, fill, tmp_path):
    fill(3)
    cells = make_leaderboard(table2, "laptop", tmp_path).board().cells
    found = {column: cells[("5",), column].comparison.ranks for _, column in cells}
    assert found == {
        "deit_top1": (2, 2),
        "convit_top1": (1, 1),
        "deit_top5": (2, 2),
        "convit_top5": (1, 1),
        "top1_gap_percent": None,
        "top5_gap_percent": None,
    }


@pytest.fixture
def widths(own_suite, finish_experiment):
    """Two models of two widths in two columns, all eight told apart by three seeds."""
    entries = []
    for width in ("64", "128"):
        for model in MODELS[:2]:
            for column in ("a", "b"):
                recipe = RECIPE.model_copy(update={"epochs": 1 + len(entries)})
                experiment = entry(model).experiment.model_copy(update={"recipe": recipe})
                entries.append(Entry(row=(model, width), columns={column: "top1_percent"}, experiment=experiment))
    for e, accuracy in zip(entries, (80, 30, 40, 70, 60, 50, 20, 10), strict=True):
        for seed in range(3):
            finish_experiment(e.experiment.with_seed(seed), accuracy + seed / 100)
    return own_suite(*entries, row_keys=("model", "width"))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("in_columns", [1, 3, 3, 1, 2, 2, 4, 4]),
        ("in_rows", [1, 2, 2, 1, 1, 2, 1, 2]),
        ("in_table", [1, 6, 5, 2, 3, 4, 7, 8]),
        (RankedWithin(row_keys=("width",)), [1, 2, 2, 1, 1, 1, 2, 2]),
        (RankedWithin(row_keys=("model", "width")), [None] * 8),
    ],
)
def test_those_compete_that_the_table_names(widths, tmp_path, rule, expected):
    table = widths.tables[0].model_copy(update={"ranked": rule})
    leaderboard = make_leaderboard(widths.model_copy(update={"tables": (table,)}), "laptop", tmp_path)
    assert [cell.comparison.ranks for cell in leaderboard.board().cells.values()] == [
        rank and (rank, rank) for rank in expected
    ]


def test_the_legend_names_the_keys_that_competitors_share(widths, tmp_path):
    table = widths.tables[0].model_copy(update={"ranked": RankedWithin(row_keys=("width",))})
    markdown = render_markdown(make_leaderboard(widths.model_copy(update={"tables": (table,)}), "laptop", tmp_path))
    assert "the best and the third of a column among the rows of one width, where" in markdown
