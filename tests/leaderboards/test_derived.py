import pytest

from leaderboards.build import make_boards
from leaderboards.render import render_markdown
from leaderboards.sheets import render_csv
from leaderboards.terminal import print_summary
from suite.profiles import Entry
from suite.spec import Experiment, Recipe
from suite.suites import get_suite
from suite.tables import ChangeFrom, MeanOf, RelativeTo

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


def cells_of(suite, store, num_seeds=None):
    cells = make_boards(suite, "laptop", store, num_seeds).board().cells
    return cells[("big",), "c"], cells[("small",), "c"]


def test_a_ratio_is_of_the_means_of_a_metric_that_no_column_shows(timed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(100.0, 50.0), (300.0, 60.0)]):
        finish_experiment(BIG.with_seed(seed), 1, lineage_train_s=big)
        finish_experiment(SMALL.with_seed(seed), 1, lineage_train_s=small)
    big, small = cells_of(timed, tmp_path)
    assert big.mean == 1
    assert small.mean == pytest.approx(110 / 400)
    assert small.values == pytest.approx({0: 0.5, 1: 0.2})
    assert (small.status, small.num_done, small.rank) == ("done", 2, None)


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
    assert (("big",), "c") not in make_boards(lone, "laptop", tmp_path).board().cells


def test_the_interval_of_a_mean_comes_from_the_means_by_seed(averaged, finish_experiment, tmp_path):
    for seed, value in enumerate((60.0, 62.0)):
        finish_experiment(BIG.with_seed(seed), value)
    big, _ = cells_of(averaged, tmp_path)
    assert big.values == {0: 70.0, 1: 71.5}
    assert big.half_width == pytest.approx(12.706204736 * 0.75)


def test_the_interval_of_a_ratio_lies_about_the_ratio_of_the_means(timed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(100.0, 50.0), (300.0, 60.0)]):
        finish_experiment(BIG.with_seed(seed), 1, lineage_train_s=big)
        finish_experiment(SMALL.with_seed(seed), 1, lineage_train_s=small)
    _, small = cells_of(timed, tmp_path)
    half_width = 12.706204736 * 0.15  # of 0.5 and 0.2
    assert (small.low, small.high) == pytest.approx((0.275 - half_width, 0.275 + half_width))


def test_a_change_is_the_difference_to_the_baseline_row_which_has_none(changed, finish_experiment, tmp_path):
    for seed, (big, small) in enumerate([(60.0, 61.0), (62.0, 59.0)]):
        finish_experiment(BIG.with_seed(seed), big)
        finish_experiment(SMALL.with_seed(seed), small)
    cells = make_boards(changed, "laptop", tmp_path).board().cells
    assert (("big",), "c") not in cells
    change = cells[("small",), "c"]
    assert (change.mean, change.values, change.rank) == (-1.0, {0: 1.0, 1: -3.0}, None)
    assert change.half_width == pytest.approx(12.706204736 * 2)


def test_a_change_is_written_with_its_sign_but_in_the_csv(changed, finish_experiment, tmp_path, capsys):
    for seed in range(2):
        finish_experiment(BIG.with_seed(seed), 60.0 + seed)
        finish_experiment(SMALL.with_seed(seed), 61.5 + seed)
    boards = make_boards(changed, "laptop", tmp_path)
    assert "| +1.50 ± 0.00 (n=2) |" in render_markdown(boards)
    print_summary(boards, tmp_path)
    assert "+1.50" in capsys.readouterr().out
    assert render_csv(boards.board()).splitlines()[2] == "small,62.00,81.00,1.50"


def test_a_change_stays_beside_its_column_where_a_table_is_broken(tmp_path):
    markdown = render_markdown(make_boards(get_suite("init_datasets"), "paper", tmp_path))
    headers = [line.split() for line in markdown.splitlines() if line.startswith("| method")]
    blocks = [[word.rstrip(",") for word in header if word.endswith(",")] for header in headers]
    assert blocks == [[name, f"{name}_change"] for name in ("cifar10", "cifar100", "svhn", "imagenet")]
