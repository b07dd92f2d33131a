"""The colours of attention on a sheet of tiles: a logarithmic scale and the bar that explains it."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullLocator

from leaderboards.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from leaderboards.figures.recorded import Array

_DECADES = 4  # of the colour scale: what attends less is drawn as the least
BAR_IN, BAR_BOTTOM_IN, THICKNESS_IN = 0.7, 0.22, 0.1  # of all that belongs to a bar; of the bar itself, from its top


def log_scale(maps: Iterable[Array], least_ratio: float = 2.0) -> LogNorm:
    """Up to the largest attention in the maps, and down by at most four decades and at least ``least_ratio``."""
    values = np.concatenate([np.zeros(0), *(pixels[np.isfinite(pixels)] for pixels in maps)])
    values = values[values > 0]
    highest = float(values.max()) if len(values) else 1.0
    lowest = float(values.min()) if len(values) else highest
    return LogNorm(min(max(lowest, highest * 10.0**-_DECADES), highest / least_ratio), highest, clip=True)


def draw_bar(canvas: Canvas, bar: Axes, norm: LogNorm) -> None:
    """Fill the axes ``bar`` with the scale's colours, and label them below it."""
    canvas.colorbar(ScalarMappable(norm, style.DEPTH_COLORS), cax=bar, orientation="horizontal", extend="min")
    lowest, highest = float(norm.vmin or 0), float(norm.vmax or 1)
    if _count_powers(lowest, highest) < 2:  # a logarithmic axis would label every digit, one over the other
        bar.set_xticks(np.geomspace(lowest, highest, 4))
        bar.xaxis.set_major_formatter(f"{{x:.{2 + max(0, ceil(-log10(highest / lowest - 1)))}g}}")
        bar.xaxis.set_minor_locator(NullLocator())
    bar.set_xlabel("Attention (probability)", fontsize=8, labelpad=1)
    bar.tick_params(labelsize=8, pad=1)


def _count_powers(lowest: float, highest: float) -> int:
    """Of ten, from ``lowest`` to ``highest``."""
    return floor(log10(highest)) - ceil(log10(lowest)) + 1
