import math
from types import SimpleNamespace

import numpy as np
import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.cells import Cell, Coverage
from leaderboards.boards.layout import PaperTable
from leaderboards.figures.heatmaps import find_grids, format_grid_cell
from leaderboards.figures.lines import find_gain, find_series, positions
from leaderboards.figures.scatter import find_points
from leaderboards.significance.estimates import Estimate
from suite.spec.figures import HeatmapFigure, LineFigure, ScatterFigure

KEYS = ("num_layers", "strength", "method")
LINE = LineFigure(
    name="line", item="Fig. 8", x_key="strength", x_label="Strength", y_label="Top-1 accuracy (%)", lines={"": "top1"}
)
HEATMAP = HeatmapFigure(
    name="map", item="Fig. 8", column="top1", x_key="strength", y_key="num_layers", x_label="Strength",
    y_label="Layers", value_label="Top-1 accuracy (%)",
)  # fmt: skip


def cell_of(row, mean, status="done", paper=None, low=None, high=None):
    shift = 0.0 if low is None else (high - low) / 2 / 4.302652729911275 * 3**0.5  # the deviation of three seeds
    estimate = Estimate({} if low is None else {0: mean - shift, 1: mean, 2: mean + shift}, mean)
    return Cell(row, "top1", "", estimate, paper, Coverage(status, 1, 1))


def board_of_cells(cells, keys=KEYS):
    rows = {cell.row: {"top1": ""} for cell in cells}
    paper = PaperTable("locality", (*keys, "top1"), keys, rows, 1)
    return SimpleNamespace(paper=paper, cells={(cell.row, "top1"): cell for cell in cells})


@pytest.fixture
def board():
    means = {("3", "2", "a"): 62.0, ("3", "1", "a"): 61.0, ("9", "1", "a"): 71.0, ("3", "1", "b"): 51.0}
    return board_of_cells([cell_of(row, mean) for row, mean in means.items()])


def test_each_combination_of_the_other_row_keys_has_its_line_in_ascending_x(board):
    lines = {line.label: (line.x, line.ours()) for line in find_series(board, LINE)}
    assert lines == {
        "layers 3, a": ((1.0, 2.0), [61.0, 62.0]),
        "layers 9, a": ((1.0,), [71.0]),
        "layers 3, b": ((1.0,), [51.0]),
    }


def test_a_line_breaks_where_a_cell_failed(board):
    board.cells[("3", "1", "a"), "top1"] = cell_of(("3", "1", "a"), 61.0, "failed")
    first = find_series(board, LINE)[0].ours()
    assert math.isnan(first[0])
    assert first[1] == 62.0


def test_a_row_key_of_names_stands_in_the_tables_order():
    board = board_of_cells([cell_of(("with",), 1.0), cell_of(("without",), 2.0)], ("warmup",))
    assert positions(board, "warmup") == {"with": 0.0, "without": 1.0}


def test_the_line_figure_has_our_means_and_the_papers_numbers(table2, fill, tmp_path):
    fill(2)
    board = make_leaderboard(table2, "laptop", tmp_path).board()
    convit, deit = find_series(board, table2.figures[0])
    assert (convit.label, deit.label) == ("ConViT", "DeiT")
    assert deit.x == (5.0, 10.0, 30.0, 50.0, 100.0)
    np.testing.assert_allclose(deit.ours(), [40.25, 48.25, 56.25, 64.25, 72.25])
    assert deit.papers() == [34.8, 48.0, 66.1, 74.6, 79.9]
    (gain,) = find_gain(board, table2.figures[0])
    assert gain.ours()[0] == pytest.approx(100 * (50.125 - 40.25) / 40.25)


def test_a_heat_map_has_a_panel_for_each_further_row_key_in_the_tables_order(board):
    grids = find_grids(board, HEATMAP)
    assert [grid.title for grid in grids] == ["a", "b"]
    assert (grids[0].x, grids[0].y) == (("2", "1"), ("3", "9"))
    np.testing.assert_array_equal(grids[0].values(), [[62.0, 61.0], [np.nan, 71.0]])


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "\N{EN DASH}"),
        (cell_of(("a",), 61.26), "61.3"),
        (cell_of(("a",), 61.26, "partial"), "61.3*"),
        (cell_of(("a",), 61.26, "failed"), "\N{EN DASH}"),
        (cell_of(("a",), None, "missing", paper=62.0), "\N{EN DASH}\n(62.0)"),
        (cell_of(("a",), 61.26, paper=62.0), "61.3\n(62.0)"),
    ],
)
def test_a_heat_maps_cell_says_what_it_lacks(cell, text):
    assert format_grid_cell(cell, 1) == text


def test_points_are_the_rows_that_have_both_numbers(table2, finish, tmp_path):
    figure = ScatterFigure(
        name="scatter", item="Fig. 2b", x_column="deit_top1", y_column="convit_top1", x_label="DeiT (%)",
        y_label="ConViT (%)", group_key="train_size_percent", label_key="train_size_percent",
    )  # fmt: skip
    for seed, top1_percent in enumerate((50.0, 52.0, 51.0)):
        finish("convit", "5", seed, top1_percent)
        finish("deit", "5", seed, 40.0)
    finish("convit", "10", 0, 60.0)
    board = make_leaderboard(table2, "laptop", tmp_path).board()
    (point,) = find_points(board, figure)
    assert (point.group, point.label, point.x, point.y, point.is_complete) == ("5", "5", 40.0, 51.0, True)
    reach = (51.0 - point.interval.low, point.interval.high - 51.0)
    assert reach == pytest.approx((2.484, 2.484), abs=0.001)
    papers = find_points(board, figure, of_paper=True)
    assert [(paper.x, paper.y) for paper in papers][:2] == [(34.8, 47.8), (48.0, 59.6)]
