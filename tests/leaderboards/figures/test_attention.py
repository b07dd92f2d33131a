import numpy as np
import pytest

from leaderboards.figures.blocks import (
    Source,
    average_blocks,
    compared_layers,
    corner_blocks,
    image_blocks,
    query_blocks,
    spread_layers,
    zoom,
)
from leaderboards.figures.recorded import read_recorded
from leaderboards.figures.tiles import WIDEST_IN, shared_scale, sheet_size


def test_recorded_maps_are_read_with_what_the_file_says_of_them(leave_run, make_arrays):
    arrays = make_arrays(2, 3)
    maps = read_recorded(leave_run("deit", arrays=arrays), ("/central",))
    assert (maps.layers, maps.grid, maps.num_images, maps.query) == (("layers.0", "layers.1"), (8, 8), 100, (4, 4))
    np.testing.assert_array_equal(maps.of_layer("after", 1, "central"), arrays["after/01/central"])
    assert maps.of_layer("after", 2, "central") is None
    assert maps.of_layer("after", 1, "images") is None  # was not asked for


# -- maps


def test_an_image_figure_shows_each_image_in_an_early_and_the_last_gated_layer(record):
    plain, gated = record(12, 3), record(12, 4, num_gated=10)
    sources = [Source("DeiT", "after", plain), Source("ConViT", "after", gated)]
    assert compared_layers(sources) == [1, 9]
    (inputs, deit, convit), note = image_blocks(sources)
    assert list(inputs.tiles) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert (inputs.tiles[0, 0].boxes[0].row, inputs.tiles[0, 0].boxes[0].height) == (16, 4)  # patch 4 of 8, 4 pixels
    assert list(deit.row_labels) == ["Layer 2", "Layer 10"] * 4
    np.testing.assert_array_equal(deit.tiles[5, 2].pixels, plain.arrays["after/09/images"][2, 2])
    assert deit.tiles[5, 2].note is None
    assert convit.tiles[0, 1].note[0] == f"{gated.arrays['after/01/gates'][1]:.2f}"
    assert "gate" in note


@pytest.mark.parametrize(
    ("num_layers", "num_gated", "expected"), [(12, 0, [1, 11]), (3, 2, [1, 2]), (2, 0, [1]), (1, 1, [0])]
)
def test_the_compared_layers_exist_and_differ(record, num_layers, num_gated, expected):
    assert compared_layers([Source("model", "after", record(num_layers, 2, num_gated))]) == expected


def test_averages_show_at_most_nine_heads_and_say_so(record):
    maps = record(2, 16)
    (block,), note = average_blocks([Source("16 heads", "before", maps)])
    assert len(block.tiles) == 2 * 9
    np.testing.assert_array_equal(block.tiles[1, 8].pixels, maps.arrays["before/01/central"][8])
    assert "The first 9 of 16 heads." in note


def test_other_queries_have_a_block_each_that_marks_them(record):
    maps = record(2, 3)
    assert len(maps.queries) == 2
    blocks, note = query_blocks([Source("content", "after", maps)])
    assert [block.title for block in blocks] == [
        "content, query in row 5, column 5",
        "content, query in row 1, column 5",
    ]
    np.testing.assert_array_equal(blocks[1].tiles[1, 2].pixels, maps.arrays["after/01/queries"][2, 1])
    (box,) = blocks[1].tiles[1, 2].boxes
    assert (box.row, box.column, box.height, box.width) == (0, 4, 1, 1)
    assert note == "Means over 100 images. Black square: the query patch."


@pytest.mark.parametrize(("side", "shape"), [(16, (7, 7)), (8, (7, 7)), (4, (4, 4))])
def test_the_zoom_shows_at_most_seven_tokens_and_marks_the_query(side, shape):
    middle = side // 2
    pixels = np.zeros((side, side))
    pixels[middle, middle] = 1.0
    tile = zoom(pixels, (middle, middle))
    assert tile.pixels.shape == shape
    row, column = int(tile.boxes[0].row), int(tile.boxes[0].column)
    assert tile.pixels[row, column] == 1.0


def test_the_corner_is_the_mean_of_the_first_three_heads_in_first_middle_and_last_layer(record):
    maps = record(12, 8)
    (block,), note = corner_blocks([Source("ViT", "after", maps)])
    assert list(block.row_labels) == ["Layer 1", "Layer 6", "Layer 12"]
    np.testing.assert_allclose(block.tiles[1, 0].pixels, maps.arrays["after/05/corner"][:3].mean(axis=0))
    assert [(box.row, box.width) for box in block.tiles[1, 0].boxes] == [(8 * i, 8) for i in range(6)]
    assert "first 3 heads" in note
    assert "the first 48 of 64" in note


def test_a_shallow_model_shows_each_layer_once():
    assert [spread_layers(num_layers) for num_layers in (1, 2, 3, 12)] == [[0], [0, 1], [0, 1, 2], [0, 5, 11]]


def test_all_maps_of_a_sheet_share_a_scale_of_at_most_four_decades(record):
    maps = record(1, 1)
    maps.arrays["after/00/central"][0, 0, :2] = 0.5, 1e-9
    blocks, _ = average_blocks([Source("model", "after", maps)])
    scale = shared_scale(blocks)
    assert scale.vmax == pytest.approx(0.5)
    assert scale.vmin == pytest.approx(0.5e-4)


def test_a_sheet_is_no_wider_than_a_page(record):
    blocks, _ = average_blocks([Source(str(i), "after", record(2, 9)) for i in range(5)])
    assert sheet_size(blocks)[0] <= WIDEST_IN + 0.2
