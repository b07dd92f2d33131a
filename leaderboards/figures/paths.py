"""A training's log -> how its Gaussian heads moved: one layer before, during and after, or the paths of all layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leaderboards.figures import style
from leaderboards.figures.heads import QUERY_NOTE, Group, Heads, Panel, draw_groups, sheet_size, view
from leaderboards.figures.logged import HeadPaths, read_paths
from leaderboards.figures.places import first_runs, name_missing, name_seeds
from suite.figures import PathsFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from leaderboards.boards import SuiteBoard

_LAYERS_IN_ROW = 6
_LAYER_SIDE_IN, _MOMENT_SIDE_IN = 1.6, 2.3
_FARTHEST = 16.0  # patches: the side of the paper's grid
_MARKS = f"{QUERY_NOTE} Lines: from each center's place before training (hollow)"
_CIRCLES = "to its place then (filled), with the ellipses that hold 50 % (solid) and 90 % (dotted) of its attention."


def draw_paths(figure: PathsFigure, boards: SuiteBoard, store: Path) -> Canvas | None:
    """The figure; None while no run behind it has finished, or none has logged where its heads are."""
    runs = first_runs(boards, figure.models, store)
    read = {title: read_paths(run) for title, (_, run) in runs.items()}
    found = {title: paths for title, paths in read.items() if paths is not None}
    if not found:
        return None
    if figure.layer is None:
        groups, side = [show_layers(title, paths) for title, paths in found.items()], _LAYER_SIDE_IN
        note = f"{_MARKS} to its place after (filled)."
    else:
        groups = [show_moments(title, paths, figure.layer) for title, paths in found.items()]
        side, note = _MOMENT_SIDE_IN, f"{_MARKS} {_CIRCLES}"
    columns = min(_LAYERS_IN_ROW, max(len(group.panels) for group in groups))
    seeds = name_seeds({title: runs[title] for title in found})
    missing = name_missing(boards, figure.models, found)
    canvas = style.new_canvas(boards, figure, *sheet_size(groups, columns, side), note, seeds, missing)
    draw_groups(canvas, groups, columns, side)
    return canvas


def show_moments(title: str, paths: HeadPaths, layer: int) -> Group:
    """One layer, of a shallower network the last one: at the start, where half of the training is done, at the end."""
    number = min(layer, len(paths.centers))
    centers, precisions = paths.centers[number - 1], paths.precisions[number - 1]
    half_way = int(np.abs(paths.epochs - paths.epochs[-1] / 2).argmin())
    last = len(paths.epochs) - 1
    names = {0: "Before training", half_way: "Epoch {:.3g}", last: "After training (epoch {:.3g})"}
    panels = [
        Panel(name.format(paths.epochs[at]), Heads(centers[at], precisions[at]), centers[: at + 1])
        for at, name in names.items()
    ]
    return Group(f"{title}, layer {number}", panels, view([centers], [panels[-1].heads], _FARTHEST))


def show_layers(title: str, paths: HeadPaths) -> Group:
    """Each layer's heads at the end, without their ellipses, and the way there."""
    panels = [
        Panel(f"Layer {number}", Heads(centers[-1], None), centers)
        for number, centers in enumerate(paths.centers, start=1)
    ]
    return Group(title, panels, view(paths.centers, [], _FARTHEST))
