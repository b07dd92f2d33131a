"""Runs of kind "maps" -> where each head of each layer looks relative to its query, as Cordonnier et al. draw it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leaderboards.figures import style
from leaderboards.figures.heads import QUERY_NOTE, Group, Heads, Panel, draw_groups, sheet_size, view
from leaderboards.figures.places import first_runs, name_missing, name_seeds
from leaderboards.figures.recorded import Recorded, When, read_recorded
from suite.figures import CentersFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from leaderboards.boards import SuiteBoard

_LAYERS_IN_ROW = 6
_SIDE_IN = 1.6
_READ = ("/centers", "/gaussian_centers", "/gaussian_precision")


def draw_centers(figure: CentersFigure, boards: SuiteBoard, store: Path) -> Canvas | None:
    """The figure; None while no maps are recorded."""
    runs = first_runs(boards, figure.models, store)
    read = {title: read_recorded(run, _READ) for title, (_, run) in runs.items()}
    found = {title: maps for title, maps in read.items() if maps is not None}
    if not found:
        return None
    groups = [group for title, maps in found.items() for group in find_groups(title, maps, figure.before)]
    columns = min(_LAYERS_IN_ROW, max(len(group.panels) for group in groups))
    notes = (_explain(groups), name_seeds({title: runs[title] for title in found}))
    missing = name_missing(boards, figure.models, found)
    canvas = style.new_canvas(boards, figure, *sheet_size(groups, columns, _SIDE_IN), *notes, missing)
    draw_groups(canvas, groups, columns, _SIDE_IN)
    return canvas


def find_groups(title: str, maps: Recorded, before: bool) -> list[Group]:
    """A model's layers after its training and, where asked, before it, all in one view."""
    moments: tuple[When, ...] = ("before", "after") if before else ("after",)
    layers = {when: find_heads(maps, when) for when in moments}
    centers = [heads.centers for of_moment in layers.values() for heads in of_moment]
    half = view(centers, layers["after"], max(maps.grid))
    return [
        Group(
            f"{title}\n{when} training" if before else title,
            [Panel(f"Layer {number}", heads) for number, heads in enumerate(of_moment, start=1)],
            half,
        )
        for when, of_moment in layers.items()
    ]


def find_heads(maps: Recorded, when: When = "after") -> list[Heads]:
    """Layer by layer the learned centers of Gaussian heads, else where attention was measured to lie."""
    found = []
    for layer in range(len(maps.layers)):
        learned = maps.of_layer(when, layer, "gaussian_centers")
        measured = maps.of_layer(when, layer, "centers")
        centers = learned if learned is not None else measured
        nothing = np.zeros((0, 2))
        found.append(Heads(nothing if centers is None else centers, maps.of_layer(when, layer, "gaussian_precision")))
    return found


def _explain(groups: list[Group]) -> str:
    if any(panel.heads.precisions is not None for group in groups for panel in group.panels):
        circles = ", which holds 50 % (solid) and 90 % (dotted) of it within its ellipses"
        return f"{QUERY_NOTE} Numbered markers: centers of each head's Gaussian attention{circles}."
    return f"{QUERY_NOTE} Numbered markers: where each head's attention lies on average."
