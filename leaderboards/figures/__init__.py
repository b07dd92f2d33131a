"""A suite's board and the runs behind it -> the figures of its paper, as PNG, SVG and PDF.

What is drawn is data, ``suite.spec.figures``; each kind has a module here:

    lines, heatmaps, scatter                      of a table's numbers
    curves, pairs, shares, attention_by_layer     of what trainings log
    classes                                       of what runs predict for each test image
    attention_sheets, centers                      of recorded attention, and of how heads moved
    claim_effects                                  of judged claims, which no suite names

They share ``parts/``: the look, and the runs behind a cell with what these have logged and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from suite.spec.figures import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from leaderboards.boards.board import Leaderboard
    from leaderboards.judged_claims import JudgedClaim


def draw(figure: Figure, leaderboard: Leaderboard, kinds: Iterable[str] = ("png", "svg", "pdf")) -> dict[str, bytes]:
    """Draw a figure in these file formats; the same data make the same bytes.

    Returns:
        The content by format; {} while there is nothing to draw.

    Raises:
        RecordError: A run's metrics or maps cannot be read.
    """
    from leaderboards.figures.parts import style  # matplotlib takes as long to start as the rest of a leaderboard

    with style.default_style():
        canvas = _find_drawer(type(figure))(figure, leaderboard)
        return {} if canvas is None else {kind: style.write(canvas, kind) for kind in kinds}


def draw_claims(claims: Sequence[JudgedClaim], kinds: Iterable[str] = ("png", "svg")) -> dict[str, bytes]:
    """Draw the effects of one scale's claims; {} where none of them is judged or unresolved."""
    from leaderboards.figures.claim_effects import draw_effects
    from leaderboards.figures.parts import style

    with style.default_style():
        canvas = draw_effects(claims)
        return {} if canvas is None else {kind: style.write(canvas, kind) for kind in kinds}


def _find_drawer(kind: type[Figure]) -> Callable[[Any, Leaderboard], Canvas | None]:
    module, _, function = kind.drawn_by.partition(".")
    found: Callable[[Any, Leaderboard], Canvas | None] = getattr(import_module(f"{__name__}.{module}"), function)
    return found
