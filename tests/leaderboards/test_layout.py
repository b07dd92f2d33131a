from pathlib import Path

import pytest

from leaderboards.boards import layout
from leaderboards.boards.layout import check_layout, lay_out, load_paper_table
from suite import papers
from suite.base.errors import RecordError, SpecError
from suite.spec.figures import CurveFigure, LayerFigure, Pair, PairFigure
from suite.spec.profile import Place
from suite.spec.suite import ChangeFrom, Gain, Headline, MeanOf, RankedWithin, RelativeGain, RelativeTo, Table


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "find_table", lambda name: tmp_path / f"{name}.csv")

    def table(text, row_keys=("model",)):
        (tmp_path / "t.csv").write_text(text)
        return load_paper_table("t", row_keys)

    return table


def test_decimals_are_those_that_the_paper_prints():
    paper = load_paper_table("convit_table2", ("train_size_percent",))
    assert [paper.decimals(column) for column in ("deit_top1", "top1_gap_percent")] == [1, 0]
    assert paper.value(("5",), "deit_top1") == 34.8


def test_every_papers_table_is_readable():
    paths = [*(Path(papers.__file__).parent.glob("*/printed_tables/*.csv"))]
    assert paths
    for path in paths:
        header = path.read_text().splitlines()[0].split(",")
        assert load_paper_table(path.stem, tuple(header[:-1])).rows


def test_an_empty_cell_has_no_value(table):
    assert table("model,top1\na,\nb,1.25\n").value(("a",), "top1") is None


def test_decimals_are_our_own_in_a_column_where_the_paper_prints_nothing(table, tmp_path):
    paper = table("model,top1,top5\na,,1.25\nb,,\n")
    assert [paper.decimals(column) for column in ("top1", "top5")] == [1, 2]
    assert load_paper_table("t", ("model",), own_decimals=3).decimals("top1") == 3


def test_a_missing_table_is_told_with_the_nearest_name():
    with pytest.raises(SpecError, match="Did you mean 'convit_table2'"):
        load_paper_table("convit_tabel2", ("train_size_percent",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,top1\na,1\n", "row keys"),
        ("model,top1\na,1\na,2\n", "repeats"),
        ("model,top1\na\n", "1 cells"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table, text, said):
    with pytest.raises(RecordError, match=said):
        table(text)


def test_a_cell_that_is_no_number_is_refused_by_name(table):
    with pytest.raises(RecordError, match="row a, column top1: found 'x'"):
        table("model,top1\na,x\n").value(("a",), "top1")


def with_entry(suite, **update):
    profile = suite.profiles["laptop"]
    first = profile.entries[0].model_copy(update=update)
    return suite, profile.model_copy(update={"entries": (first, *profile.entries[1:])})


def test_a_suite_that_fits_its_table_passes(table2):
    check_layout(table2, table2.profile("laptop"))


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"row": ("7",)}, "unknown row '7'"),
        ({"row": ("5", "5")}, "row 5 / 5 has 2 keys, table convit_table2 1"),
        ({"table": "convit_tabel2"}, "Did you mean 'convit_table2'"),
        ({"columns": {"deit_top": "top1_percent"}}, "Did you mean 'deit_top"),
        ({"columns": {"deit_top1": "top1"}}, "unknown metric 'top1'. Did you mean 'top"),
        ({"columns": {"convit_top1": "top1_percent"}}, "two entries fill row 5, column convit_top1"),
    ],
)
def test_an_entry_outside_the_table_is_refused(table2, update, said):
    suite, profile = with_entry(table2, **update)
    with pytest.raises(SpecError, match=said):
        check_layout(suite, profile)


@pytest.mark.parametrize(
    "derived",
    [
        RelativeGain(column="gap", better="convit_top1", baseline="deit_top1"),
        RelativeGain(column="top1_gap_percent", better="convit_top1", baseline="deit"),
        Gain(column="top1_gap_percent", better="convit", baseline="deit_top1"),
        RelativeTo(column="top1_gap_percent", metric="time", baseline=("5",)),
        RelativeTo(column="top1_gap_percent", metric="train_s", baseline=("6",)),
        MeanOf(column="top1_gap_percent", columns=("deit_top1", "convit")),
        ChangeFrom(column="top1_gap_percent", of="deit", baseline=("5",)),
        ChangeFrom(column="top1_gap_percent", of="deit_top1", baseline=("6",)),
    ],
)
def test_derived_columns_outside_the_table_are_refused(table2, derived):
    table = table2.tables[0].model_copy(update={"derived": (derived,)})
    suite = table2.model_copy(update={"tables": (table,)})
    with pytest.raises(SpecError, match="unknown"):
        check_layout(suite, suite.profile("laptop"))


def test_ranks_within_a_key_that_the_table_has_not_are_refused(table2):
    table = table2.tables[0].model_copy(update={"ranked": RankedWithin(row_keys=("train_size",))})
    suite = table2.model_copy(update={"tables": (table,)})
    with pytest.raises(SpecError, match="Did you mean 'train_size_percent'"):
        check_layout(suite, suite.profile("laptop"))


def test_a_ratio_to_a_row_needs_one_experiment_a_row(table2):
    derived = RelativeTo(column="top1_gap_percent", metric="train_s", baseline=("5",))
    table = table2.tables[0].model_copy(update={"derived": (derived,)})
    suite = table2.model_copy(update={"tables": (table,)})
    with pytest.raises(SpecError, match="needs one experiment in row 5"):
        check_layout(suite, suite.profile("laptop"))


@pytest.mark.parametrize("update", [{"x_key": "size"}, {"lines": {"DeiT": "deit"}}, {"table": "table3"}])
def test_figures_outside_the_table_are_refused(table2, update):
    suite = table2.model_copy(update={"figures": (table2.figures[0].model_copy(update=update),)})
    with pytest.raises(SpecError, match="unknown"):
        check_layout(suite, suite.profile("laptop"))


HERE, ELSEWHERE = Place(row=("5",), column="deit_top1"), Place(row=("6",), column="deit_top1")


@pytest.mark.parametrize(
    "figure",
    [
        CurveFigure(name="f", item="", metric="loss", y_label="", panels={"a": {"x": HERE, "y": ELSEWHERE}}),
        LayerFigure(name="f", item="", quantity="gates", models={"a": ELSEWHERE}),
        PairFigure(
            name="f",
            item="",
            metric="top1_percent",
            pairs={"a": Pair(baseline=HERE, better=HERE, gain=ELSEWHERE)},
            **dict.fromkeys(("y_label", "gain_label", "pairs_label", "baseline", "better"), ""),
        ),
    ],
)
def test_places_of_a_figure_outside_the_table_are_refused(table2, figure):
    suite = table2.model_copy(update={"figures": (figure,)})
    with pytest.raises(SpecError, match="unknown row '6'"):
        check_layout(suite, suite.profile("laptop"))


def test_a_figure_may_name_a_place_that_a_profile_leaves_empty(table2):
    profile = table2.profile("laptop")
    check_layout(table2, profile.model_copy(update={"entries": profile.entries[2:]}))


def test_a_headline_outside_the_table_is_refused(table2):
    suite = table2.model_copy(update={"headline": Headline(text="", better=HERE, baseline=ELSEWHERE)})
    with pytest.raises(SpecError, match="unknown row '6'"):
        check_layout(suite, suite.profile("laptop"))


@pytest.mark.parametrize("name", ["long", "runs", "convit_table2"])
def test_a_figure_cannot_take_a_files_name_that_is_taken(table2, name):
    suite = table2.model_copy(update={"figures": (table2.figures[0].model_copy(update={"name": name}),)})
    with pytest.raises(SpecError, match=f"the name '{name}' is taken"):
        check_layout(suite, suite.profile("laptop"))


def test_a_table_of_our_own_has_the_entries_rows_in_order_and_no_numbers(table2):
    table = Table(name="ours", item="", row_keys=("size",), columns=("a", "b"), ranked="none", decimals=2)
    entries = table2.profile("laptop").entries
    own = lay_out(table, [entries[2], entries[0], entries[3]])
    assert list(own.rows) == [("10",), ("5",)]
    assert own.header == ("size", "a", "b")
    assert (own.value(("5",), "a"), own.decimals("b")) == (None, 2)
