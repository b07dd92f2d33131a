"""Curves over the epochs of training, in one panel of a figure or of a page."""

import math
from collections.abc import Collection, Mapping

from matplotlib.axes import Axes

from leaderboards.figures.parts import style
from leaderboards.figures.parts.logged import MOST_BANDS, Curve

_MOST_MARKERS = 25  # in a line
_BESIDE = 0.02  # of the x axis, between the bars beside the ends of lines


def draw_panel(
    axes: Axes, curves: Mapping[str, Curve], marks: Mapping[str, tuple[str, str]], dashed: Collection[str] = ()
) -> None:
    """Draw curves of one metric, with bands where they are few, else with bars beside their ends.

    Args:
        axes: Panel.
        curves: Curves by label.
        marks: Color and marker of each label.
        dashed: Labels whose lines are dashed.
    """
    if not curves:
        style.write_no_data(axes)
        return
    style.tidy(axes)
    longest = max(curve.epochs[-1] - curve.epochs[0] for curve in curves.values())
    for place, (label, curve) in enumerate(curves.items()):
        color, marker = marks[label]
        every = math.ceil(len(curve.epochs) / 8) if len(curve.epochs) > _MOST_MARKERS else 1
        start = place * every // len(curves)  # markers of lines that meet stand beside each other
        axes.plot(
            curve.epochs, curve.mean, "--" if label in dashed else "-", color=color, marker=marker, linewidth=1.8,
            markersize=5, markevery=(start, every),
        )  # fmt: skip
        if curve.num_seeds > 1 and len(curves) <= MOST_BANDS:
            axes.fill_between(curve.epochs, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
        elif curve.num_seeds > 1:
            x = curve.epochs[-1] + longest * _BESIDE * (1 + place)
            axes.plot([x, x], [curve.low[-1], curve.high[-1]], color=color, linewidth=2.2, solid_capstyle="butt")
    axes.set_xlabel("Epoch")
