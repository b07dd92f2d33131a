"""Runs -> where heads look relative to their query, as Cordonnier et al. draw it: after training, or over it."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import HeadPaths, read_paths
from leaderboards.boards.recorded import Recorded, When, read_recorded
from leaderboards.figures.parts import style
from leaderboards.figures.parts.heads import QUERY_NOTE, Group, Heads, Panel, draw_groups, sheet_size, view
from leaderboards.figures.parts.runs import read_first_runs
from suite.spec.figures import CentersFigure, ModelsFigure, PathsFigure

_LAYERS_IN_ROW = 6
_LAYER_SIDE_IN, _MOMENT_SIDE_IN = 1.6, 2.3
_READ = ("/centers", "/gaussian_centers", "/gaussian_precision")
_FARTHEST = 16.0  # patches: the side of the paper's grid
_MARKS = f"{QUERY_NOTE} Lines: from each center's place before training (hollow)"
_CIRCLES = "to its place then (filled), with the ellipses that hold 50 % (solid) and 90 % (dotted) of its attention."


def draw_centers(figure: CentersFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no maps are recorded."""
    found, notes = read_first_runs(leaderboard, figure.models, lambda run: read_recorded(run, _READ))
    if not found:
        return None
    groups = [group for title, maps in found.items() for group in find_groups(title, maps, figure.before)]
    return _draw(figure, leaderboard, groups, _LAYER_SIDE_IN, (_explain(groups), *notes))


def _draw(
    figure: ModelsFigure, leaderboard: Leaderboard, groups: list[Group], side: float, notes: tuple[str, ...]
) -> Canvas:
    columns = min(_LAYERS_IN_ROW, max(len(group.panels) for group in groups))
    canvas = style.new_canvas(leaderboard, figure, *sheet_size(groups, columns, side), *notes)
    draw_groups(canvas, groups, columns, side)
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
        kinds = (maps.of_layer(when, layer, what) for what in ("gaussian_centers", "centers"))
        centers = next((centers for centers in kinds if centers is not None), np.zeros((0, 2)))
        found.append(Heads(centers, maps.of_layer(when, layer, "gaussian_precision")))
    return found


def _explain(groups: list[Group]) -> str:
    if any(panel.heads.precisions is not None for group in groups for panel in group.panels):
        circles = ", which holds 50 % (solid) and 90 % (dotted) of it within its ellipses"
        return f"{QUERY_NOTE} Numbered markers: centers of each head's Gaussian attention{circles}."
    return f"{QUERY_NOTE} Numbered markers: where each head's attention lies on average."


def draw_paths(figure: PathsFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run behind it has finished, or none has logged where its heads are."""
    found, notes = read_first_runs(leaderboard, figure.models, read_paths)
    if not found:
        return None
    if figure.layer is None:
        groups = [show_layers(title, paths) for title, paths in found.items()]
        note = f"{_MARKS} to its place after (filled)."
        return _draw(figure, leaderboard, groups, _LAYER_SIDE_IN, (note, *notes))
    groups = [show_moments(title, paths, figure.layer) for title, paths in found.items()]
    return _draw(figure, leaderboard, groups, _MOMENT_SIDE_IN, (f"{_MARKS} {_CIRCLES}", *notes))


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
