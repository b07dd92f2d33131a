"""A suite's board and the runs behind it -> the figures of its paper, as PNG, SVG and PDF.

What is drawn is data, ``suite.spec.figures``; each kind has a module here:

    lines, heatmaps, scatter            of a table's numbers
    curves, pairs, shares, attention_by_layer     of what trainings log
    attention_sheets, centers                      of recorded attention, and of how heads moved

They share ``parts/``: the look, and the runs behind a cell with what these have logged and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from suite.spec.figures import (
    CentersFigure,
    CurveFigure,
    Figure,
    HeatmapFigure,
    LayerFigure,
    LineFigure,
    MapsFigure,
    PairFigure,
    PathsFigure,
    ProgressFigure,
    ScatterFigure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from leaderboards.boards.board import Leaderboard


def draw(figure: Figure, leaderboard: Leaderboard, kinds: Iterable[str] = ("png", "svg", "pdf")) -> dict[str, bytes]:
    """``{"png": ..., "svg": ..., "pdf": ...}``, the same bytes for the same data; {} without any to draw.

    Args:
        figure: what is drawn.
        leaderboard: of what.
        kinds: the formats.

    Raises:
        RecordError: if a run's metrics or maps cannot be read.
    """
    from leaderboards.figures.parts import style  # matplotlib takes as long to start as the rest of a leaderboard

    with style.default_style():
        canvas = _draw(figure, leaderboard)
        return {} if canvas is None else style.save(canvas, kinds)


def _draw(figure: Figure, leaderboard: Leaderboard) -> Canvas | None:
    from leaderboards.figures import (
        attention_by_layer,
        attention_sheets,
        centers,
        curves,
        heatmaps,
        lines,
        pairs,
        scatter,
        shares,
    )

    match figure:
        case LineFigure():
            return lines.draw_lines(figure, leaderboard)
        case HeatmapFigure():
            return heatmaps.draw_heatmap(figure, leaderboard)
        case ScatterFigure():
            return scatter.draw_scatter(figure, leaderboard)
        case CurveFigure():
            return curves.draw_curves(figure, leaderboard)
        case ProgressFigure():
            return shares.draw_shares(figure, leaderboard)
        case PairFigure():
            return pairs.draw_pairs(figure, leaderboard)
        case LayerFigure():
            return attention_by_layer.draw_layers(figure, leaderboard)
        case MapsFigure():
            return attention_sheets.draw_maps(figure, leaderboard)
        case CentersFigure():
            return centers.draw_centers(figure, leaderboard)
        case PathsFigure():
            return centers.draw_paths(figure, leaderboard)
