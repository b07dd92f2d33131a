import pytest

from leaderboards import papers
from leaderboards.layout import check_layout
from leaderboards.papers import load_paper_table
from suite.errors import RecordError, SpecError
from suite.spec import LineFigure, RelativeGain


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(papers, "PAPERS", tmp_path)

    def table(text, row_keys=("model",)):
        (tmp_path / "t.csv").write_text(text)
        return load_paper_table("t", row_keys)

    return table


def test_decimals_are_those_that_the_paper_prints():
    paper = load_paper_table("convit_table2", ("train_size_percent",))
    assert [paper.decimals(column) for column in ("deit_top1", "top1_gap_percent")] == [1, 0]
    assert paper.value(("5",), "deit_top1") == 34.8


def test_every_papers_table_is_readable():
    for path in papers.PAPERS.glob("*.csv"):
        header = path.read_text().splitlines()[0].split(",")
        assert load_paper_table(path.stem, tuple(header[:-1])).rows


def test_an_empty_cell_has_no_value(table):
    assert table("model,top1\na,\nb,1.25\n").value(("a",), "top1") is None


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
    check_layout(table2, table2.profile("laptop"), load_paper_table(table2.table, table2.row_keys))


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"row": ("7",)}, "unknown row '7'"),
        ({"columns": {"deit_top": "top1_percent"}}, "Did you mean 'deit_top"),
        ({"columns": {"deit_top1": "top1"}}, "unknown metric 'top1'. Did you mean 'top"),
        ({"columns": {"convit_top1": "top1_percent"}}, "two entries fill row 5, column convit_top1"),
    ],
)
def test_an_entry_outside_the_table_is_refused(table2, update, said):
    suite, profile = with_entry(table2, **update)
    with pytest.raises(SpecError, match=said):
        check_layout(suite, profile, load_paper_table(suite.table, suite.row_keys))


@pytest.mark.parametrize(
    "update",
    [
        {"derived": (RelativeGain(column="gap", better="convit_top1", baseline="deit_top1"),)},
        {"figure": LineFigure(x_key="size", x_label="", y_label="", lines={})},
        {"figure": LineFigure(x_key="train_size_percent", x_label="", y_label="", lines={"DeiT": "deit"})},
    ],
)
def test_derived_columns_and_figures_outside_the_table_are_refused(table2, update):
    suite = table2.model_copy(update=update)
    with pytest.raises(SpecError, match="unknown"):
        check_layout(suite, suite.profile("laptop"), load_paper_table(suite.table, suite.row_keys))
