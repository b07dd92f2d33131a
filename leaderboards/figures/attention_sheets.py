"""Runs of kind "maps" -> a sheet of attention maps, of several models, before their training, after it, or both."""

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure as Canvas

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.recorded import When, read_recorded
from leaderboards.figures.parts import blocks, style
from leaderboards.figures.parts.runs import read_first_runs
from leaderboards.figures.parts.tiles import draw_sheet, sheet_size
from suite.spec.figures import MapsFigure

# What is read from a run's file, and what makes blocks of it.
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Sequence[blocks.ShownMaps]], blocks.Blocks]]] = {
    "images": (("images", "/gates"), blocks.image_blocks),
    "central": (("/central",), blocks.average_blocks),
    "around": (("/central",), partial(blocks.average_blocks, make_tile=blocks.zoom)),
    "queries": (("/queries",), blocks.query_blocks),
    "between": (("/between",), blocks.between_blocks),
    "corner": (("/between",), partial(blocks.between_blocks, corner=blocks.CORNER)),
}


def draw_maps(figure: MapsFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no maps are recorded."""
    names, make_blocks = _KINDS[figure.what]
    found, notes = read_first_runs(leaderboard, figure.models, lambda run: read_recorded(run, names))
    asked: dict[When, bool] = {"before": figure.before, "after": figure.after}
    shown = [  # at the moments that each model's run has recorded
        blocks.ShownMaps(
            f"{title}, {when} training" if figure.before else title, when, maps, figure.layers, figure.num_images
        )
        for title, maps in found.items()
        for when, is_asked in asked.items()
        if is_asked and when in maps.moments
    ]
    if not shown:
        return None
    sheet, note = make_blocks(shown)
    for block in sheet:
        block.has_own_scale = figure.color_scale == "model" and bool(block.maps)
    canvas = style.new_canvas(leaderboard, figure, *sheet_size(sheet), note, *notes)
    draw_sheet(canvas, sheet)
    return canvas
