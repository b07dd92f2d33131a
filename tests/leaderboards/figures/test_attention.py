from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.recorded import Recorded, read_recorded
from leaderboards.figures.attention_sheets import draw_maps
from leaderboards.figures.parts.blocks import (
    CORNER,
    ShownMaps,
    average_blocks,
    between_blocks,
    compared_layers,
    image_blocks,
    query_blocks,
    zoom,
)
from leaderboards.figures.parts.style import draw_bar, log_scale
from leaderboards.figures.parts.tiles import WIDEST_IN, sheet_size
from suite.spec.figures import MapsFigure


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
    sources = [ShownMaps("DeiT", "after", plain), ShownMaps("ConViT", "after", gated)]
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
    ("num_layers", "paper_layers", "expected"),
    [
        (12, (1, 4, 7, 10), [0, 3, 6, 9]),
        (4, (1, 4, 7, 10), [0, 1, 2]),
        (3, (1, 10), [0, 2]),
        (1, (1, 10), [0]),
        (12, (), []),
    ],
)
def test_the_papers_layers_are_shown_or_those_at_the_same_depth(record, num_layers, paper_layers, expected):
    assert ShownMaps("model", "after", record(num_layers, 2), paper_layers).layers == expected


def test_an_image_figure_shows_the_papers_layers_of_as_many_images_as_it_does(record):
    maps = record(12, 3)
    (inputs, block), _ = image_blocks([ShownMaps("DeiT", "after", maps, (1, 4, 7, 10), num_images=1)])
    assert (len(inputs.tiles), list(block.row_labels)) == (1, ["Layer 1", "Layer 4", "Layer 7", "Layer 10"])
    np.testing.assert_array_equal(block.tiles[2, 1].pixels, maps.arrays["after/06/images"][0, 1])


def test_an_average_shows_the_papers_layers(record):
    maps = record(12, 3)
    (block,), _ = average_blocks([ShownMaps("DeiT", "before", maps, (1, 10))])
    assert list(block.row_labels) == ["Layer 1", "Layer 10"]
    np.testing.assert_array_equal(block.tiles[1, 2].pixels, maps.arrays["before/09/central"][2])


@pytest.mark.parametrize(
    ("num_layers", "num_gated", "expected"), [(12, 0, [1, 11]), (3, 2, [1, 2]), (2, 0, [1]), (1, 1, [0])]
)
def test_the_compared_layers_exist_and_differ(record, num_layers, num_gated, expected):
    assert compared_layers([ShownMaps("model", "after", record(num_layers, 2, num_gated))]) == expected


def test_averages_show_at_most_nine_heads_and_say_so(record):
    maps = record(2, 16)
    (block,), note = average_blocks([ShownMaps("16 heads", "before", maps)])
    assert len(block.tiles) == 2 * 9
    np.testing.assert_array_equal(block.tiles[1, 8].pixels, maps.arrays["before/01/central"][8])
    assert "The first 9 of 16 heads." in note


def test_other_queries_have_a_block_each_that_marks_them(record):
    maps = record(2, 3)
    assert len(maps.queries) == 2
    blocks, note = query_blocks([ShownMaps("content", "after", maps)])
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


def test_the_map_between_patches_is_shown_whole_in_every_layer_before_and_after(record):
    maps = record(14, 8)
    blocks, note = between_blocks([ShownMaps("ViT", "before", maps), ShownMaps("ViT", "after", maps)])
    for block, when in zip(blocks, ("before", "after"), strict=True):
        assert list(block.row_labels) == [f"Layer {number}" for number in range(1, 15)]
        assert sorted(block.tiles) == [(layer, 0) for layer in range(14)]
        np.testing.assert_array_equal(block.tiles[13, 0].pixels, maps.arrays[f"{when}/13/between"])
        assert block.tiles[13, 0].boxes == ()
    assert "all 64" in note


def test_the_corner_is_outlined_in_the_whole_map_and_enlarged_beside_it(record):
    maps = record(2, 8)
    (block,), note = between_blocks([ShownMaps("ViT", "before", maps)], CORNER)
    whole, corner = block.tiles[1, 0], block.tiles[1, 1]
    np.testing.assert_array_equal(whole.pixels, maps.arrays["before/01/between"])
    np.testing.assert_array_equal(corner.pixels, whole.pixels[:48, :48])
    assert [(box.row, box.column, box.height, box.width) for box in whole.boxes] == [(0, 0, 48, 48)]
    assert [(box.row, box.width) for box in corner.boxes] == [(8 * i, 8) for i in range(6)]
    assert "Red boxes are enlarged" in note


def test_a_map_that_is_no_larger_than_the_corner_is_not_shown_twice(record):
    maps = record(1, 1)
    maps.arrays["after/00/between"] = maps.arrays["after/00/between"][:48, :48]
    (block,), note = between_blocks([ShownMaps("ViT", "after", maps)], CORNER)
    assert list(block.tiles) == [(0, 0)]
    assert block.tiles[0, 0].boxes == ()
    assert "the first 48 of 64" in note
    assert "Red boxes" not in note


def test_all_maps_of_a_sheet_share_a_scale_of_at_most_four_decades(record):
    maps = record(1, 1)
    maps.arrays["after/00/central"][0, 0, :2] = 0.5, 1e-9
    blocks, _ = average_blocks([ShownMaps("model", "after", maps)])
    scale = log_scale(blocks[0].maps)
    assert scale.vmax == pytest.approx(0.5)
    assert scale.vmin == pytest.approx(0.5e-4)


def test_networks_that_nobody_trained_are_drawn_before_training_in_a_scale_of_their_own(
    map_places, leave_run, make_arrays, board_of, tmp_path
):
    figure = MapsFigure(
        name="figure3", item="Fig. 3", what="images", models=map_places, before=True, layers=(1,), num_images=1,
        color_scale="model",
    )  # fmt: skip
    arrays = {name: array for name, array in make_arrays(1, 2).items() if not name.startswith("after")}
    leave_run("deit", arrays=arrays)
    leave_run("convit", arrays={name: array / 1000 if "/" in name else array for name, array in arrays.items()})
    axes = draw_maps(figure, board_of(figure)).axes
    titles = {" ".join(text.get_text().split()) for text in axes[0].texts}
    assert titles >= {"deit, before training", "convit, before training"}
    highest = [bar.get_xlim()[1] for bar in axes[1:]]
    assert highest == pytest.approx([arrays["before/00/images"][0].max() / factor for factor in (1, 1000)], rel=1e-3)
    assert draw_maps(figure.model_copy(update={"before": False}), board_of(figure)) is None


def test_a_bar_of_nearly_even_attention_has_labels_that_differ():
    canvas = Canvas()
    bar = canvas.add_subplot()
    draw_bar(canvas, bar, log_scale([np.array([0.00390, 0.00393])], 1.001))
    labels = [label.get_text() for label in bar.get_xticklabels()]
    assert len(set(labels)) == len(labels) == 4


def test_labels_of_a_bar_of_little_over_a_decade_stand_apart():
    canvas = Canvas(figsize=(3.0, 0.5))
    bar = canvas.add_axes((0.05, 0.6, 0.9, 0.2))
    draw_bar(canvas, bar, log_scale([np.array([4e-3, 6e-2])]))
    canvas.draw_without_rendering()
    labels = [label for minor in (False, True) for label in bar.get_xticklabels(minor=minor) if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_sheet_is_no_wider_than_a_page(record):
    blocks, _ = average_blocks([ShownMaps(str(i), "after", record(2, 9)) for i in range(5)])
    assert sheet_size(blocks)[0] <= WIDEST_IN + 0.2


def test_the_mass_one_step_away_counts_all_neighbours_and_not_the_patch_itself():
    between = np.arange(36.0).reshape(6, 6)  # of a grid of two rows and three columns
    neighbours = {0: (1, 3, 4), 1: (0, 2, 3, 4, 5), 2: (1, 4, 5), 3: (0, 1, 4), 4: (0, 1, 2, 3, 5), 5: (1, 2, 4)}
    expected = sum(between[query, key] for query, keys in neighbours.items() for key in keys)
    recorded = Recorded(("blocks.0",), (2, 3), 1, {"before/00/between": between})
    assert recorded.mass_one_step_away("before", 0) == pytest.approx(100 * expected / 6)
    assert recorded.mass_one_step_away("after", 0) is None
