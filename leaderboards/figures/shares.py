"""Runs -> a metric on the way against a number in which the models differ: a line for each moment of the training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import Curve, Floats
from leaderboards.figures.parts import style
from leaderboards.figures.parts.runs import curve_behind, name_missing, name_num_seeds
from suite.spec.figures import ProgressFigure


@dataclass(frozen=True)
class Moment:
    """One share of the training: each model's epochs, and the mean, lowest and highest of its seeds. NaN, where a model
    has no finished run, breaks the line."""

    epochs: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def label(self) -> str:
        first, last = f"{np.nanmin(self.epochs):.3g}", f"{np.nanmax(self.epochs):.3g}"
        return f"Epoch {first}" if first == last else f"Epochs {first} to {last}"


def draw_shares(figure: ProgressFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run behind it has finished."""
    places = {f"{figure.x_label.lower()} {x}": place for x, place in figure.models.items()}
    curves = {name: curve_behind(leaderboard, place, figure.metric) for name, place in places.items()}
    found = {name: curve for name, curve in curves.items() if curve is not None}
    if not found:
        return None
    moments = find_moments(list(curves.values()), figure.shares)
    notes = (name_num_seeds(found.values()), name_missing(leaderboard, places, found))
    canvas = style.new_canvas(leaderboard, figure, 6.8, 3.9, *notes)
    axes = canvas.add_subplot()
    style.tidy(axes)
    marks = list(zip(style.depth_colors(len(moments)), style.MARKERS, strict=False))
    x = [float(number) for number in figure.models]
    for moment, (color, marker) in zip(moments, marks, strict=False):
        axes.plot(x, moment.mean, color=color, marker=marker, linewidth=1.8, markersize=5)
        axes.fill_between(x, moment.low, moment.high, color=color, alpha=0.2, linewidth=0)  # no area for one seed
    axes.set_xticks(x, labels=list(figure.models))
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    labels = [moment.label for moment in moments]
    what = style.legend_entries(zip(labels, marks, strict=False), linewidth=1.8, markersize=5)
    style.add_legend(canvas, what, most=3)
    return canvas


def find_moments(curves: Sequence[Curve | None], shares: Sequence[float]) -> list[Moment]:
    """A moment for each share; shares whose nearest evaluations are the same in all models give one."""
    moments: dict[tuple[int, ...], Moment] = {}
    for share in shares:
        nearest = tuple(0 if curve is None else _nearest(curve, share) for curve in curves)
        moments.setdefault(nearest, Moment(*np.array([_read(*at) for at in zip(curves, nearest, strict=True)]).T))
    return list(moments.values())


def _nearest(curve: Curve, share: float) -> int:
    """The index of the evaluation nearest to a share of the training; of two as near the later one."""
    distance = np.round(np.abs(curve.epochs / curve.epochs[-1] - share), 3)
    return int(np.flatnonzero(distance == distance.min())[-1])


def _read(curve: Curve | None, i: int) -> tuple[float, ...]:
    return (np.nan,) * 4 if curve is None else (curve.epochs[i], curve.mean[i], curve.low[i], curve.high[i])
