import pytest

from leaderboards.build import make_boards
from leaderboards.render import render_markdown
from suite.profiles import Entry
from suite.spec import Experiment, Recipe
from suite.tables import RankedWithin

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
MODELS = ("deit_ti", "deit_s", "convit_ti", "convit_s")


def entry(model, **columns):
    experiment = Experiment(model=model, dataset="cifar10", image_size=32, recipe=RECIPE)
    return Entry(row=(model,), columns=columns or {"a": "top1_percent"}, experiment=experiment)


def ranks(suite, store, column="a"):
    cells = make_boards(suite, "laptop", store).board().cells
    return [cells[(model,), column].rank for model in MODELS if ((model,), column) in cells]


@pytest.fixture
def ranked(own_suite, finish_experiment):
    """A column of four models: the first two overlap, the third is worse, the fourth the worst."""
    entries = [entry(model, a="top1_percent", b="train_s", c="top1_fraction") for model in MODELS]
    for e, (low, high) in zip(entries, [(80, 80.2), (80.1, 80.3), (70, 70.1), (50, 50.1)], strict=True):
        finish_experiment(e.experiment, low)
        finish_experiment(e.experiment.with_seed(1), high)
    return own_suite(*entries)


def test_models_whose_intervals_overlap_share_a_rank_in_a_column(ranked, tmp_path):
    assert ranks(ranked, tmp_path) == [1, 1, 3, 4]
    assert ranks(ranked, tmp_path, "c") == [1, 1, 3, 4]


def test_what_is_no_accuracy_has_no_rank(ranked, tmp_path):
    assert ranks(ranked, tmp_path, "b") == [None] * 4


def test_a_table_that_ranks_nothing_has_no_ranks(ranked, tmp_path):
    table = ranked.tables[0].model_copy(update={"ranked": "none"})
    assert ranks(ranked.model_copy(update={"tables": (table,)}), tmp_path) == [None] * 4


def test_ranks_are_shown_in_the_markdown_with_their_legend(ranked, tmp_path):
    markdown = render_markdown(make_boards(ranked, "laptop", tmp_path))
    assert "70.05 ± 0.64 (n=2) #3" in markdown
    assert "#1 is the best of a column" in markdown


def test_one_seed_failed_seeds_and_voids_have_no_rank(ranked, finish_experiment, tmp_path):
    first, second, third, _ = ranked.profile("laptop").entries
    finish_experiment(first.experiment.with_seed(1), 80.2).result_path.unlink()
    finish_experiment(second.experiment.with_seed(1), 80.2, protocol_version=0)
    finish_experiment(third.experiment.with_seed(2), 80.2).result_path.write_text("{")
    assert ranks(ranked, tmp_path) == [None, None, None, None]  # the fourth has nobody left to compete with


def test_in_rows_the_cells_of_a_row_compete_that_show_the_same_metric(table2, fill, tmp_path):
    fill(3)
    cells = make_boards(table2, "laptop", tmp_path).board().cells
    found = {column: cells[("5",), column].rank for _, column in cells}
    assert found == {
        "deit_top1": 2,
        "convit_top1": 1,
        "deit_top5": 2,
        "convit_top5": 1,
        "top1_gap_percent": None,
        "top5_gap_percent": None,
    }


@pytest.fixture
def widths(own_suite, finish_experiment):
    """Two models of two widths in two columns; no two of the eight intervals overlap."""
    entries = []
    for width in ("64", "128"):
        for model in MODELS[:2]:
            for column in ("a", "b"):
                recipe = RECIPE.model_copy(update={"epochs": 1 + len(entries)})
                experiment = entry(model).experiment.model_copy(update={"recipe": recipe})
                entries.append(Entry(row=(model, width), columns={column: "top1_percent"}, experiment=experiment))
    for e, accuracy in zip(entries, (80, 30, 40, 70, 60, 50, 20, 10), strict=True):
        finish_experiment(e.experiment, accuracy)
        finish_experiment(e.experiment.with_seed(1), accuracy + 0.1)
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
    boards = make_boards(widths.model_copy(update={"tables": (table,)}), "laptop", tmp_path)
    assert [cell.rank for cell in boards.board().cells.values()] == expected


def test_the_legend_names_the_keys_that_competitors_share(widths, tmp_path):
    table = widths.tables[0].model_copy(update={"ranked": RankedWithin(row_keys=("width",))})
    markdown = render_markdown(make_boards(widths.model_copy(update={"tables": (table,)}), "laptop", tmp_path))
    assert "#1 is the best of a column among the rows of one width." in markdown
