"""Runs of kind "maps" -> a sheet of attention maps, of several models and, where asked, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leaderboards.figures import style
from leaderboards.figures.blocks import Source, average_blocks, corner_blocks, image_blocks, query_blocks, zoomed_blocks
from leaderboards.figures.places import first_runs, name_missing, name_seeds
from leaderboards.figures.recorded import When, read_recorded
from leaderboards.figures.tiles import draw_sheet, sheet_size
from suite.tables import MapsFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from leaderboards.aggregate import SuiteBoard

# What is read from a run's file, and what makes blocks of it.
_KINDS = {
    "images": (("images", "/gates"), image_blocks),
    "central": (("/central",), average_blocks),
    "around": (("/central",), zoomed_blocks),
    "queries": (("/queries",), query_blocks),
    "corner": (("/corner",), corner_blocks),
}


def draw_maps(figure: MapsFigure, boards: SuiteBoard, store: Path) -> Canvas | None:
    """The figure; None while no maps are recorded."""
    names, make_blocks = _KINDS[figure.what]
    runs = first_runs(boards, figure.models, store)
    read = {title: read_recorded(run, names) for title, (_, run) in runs.items()}
    found = {title: maps for title, maps in read.items() if maps is not None and maps.arrays}
    if not found:
        return None
    moments: tuple[When, ...] = ("before", "after") if figure.before else ("after",)
    blocks, note = make_blocks(
        [
            Source(f"{title}, {when} training" if figure.before else title, when, maps)
            for title, maps in found.items()
            for when in moments
        ]
    )
    seeds = name_seeds({title: runs[title] for title in found})
    missing = name_missing(boards, figure.models, found)
    canvas = style.new_canvas(boards, figure, *sheet_size(blocks), note, seeds, missing)
    draw_sheet(canvas, blocks)
    return canvas
