"""A suite's board and the runs behind it -> the figures of its paper, as PNG, SVG and PDF.

What is drawn is data, ``suite.spec.figures``; each kind has a module here:

    lines, heatmaps, scatter                      of a table's numbers
    curves, pairs, shares, attention_by_layer     of what trainings log
    classes                                       of what runs predict for each test image
    attention_sheets, centers                      of recorded attention, and of how heads moved
    claim_effects                                  of judged claims, which no suite names

They share ``parts/``: the look, and the runs behind a cell with what these have logged and recorded.
"""

from collections.abc import Iterable, Sequence
from pkgutil import resolve_name

from leaderboards.boards.board import Leaderboard
from leaderboards.judged_claims import JudgedClaim
from suite.base.errors import RecordError
from suite.spec.figures import Figure


def draw(figure: Figure, leaderboard: Leaderboard, kinds: Iterable[str] = ("png", "svg", "pdf")) -> dict[str, bytes]:
    """Draw a figure in these file formats; the same data make the same bytes.

    Returns:
        The content by format; {} while there is nothing to draw.

    Raises:
        RecordError: A run's metrics or maps cannot be read.
    """
    return _draw(type(figure).drawn_by, kinds, figure, leaderboard)


def draw_all(
    leaderboard: Leaderboard, kinds: Iterable[str] = ("png", "svg", "pdf")
) -> tuple[dict[str, dict[str, bytes]], list[str]]:
    """Draw the figures of a suite, by name; those that cannot be drawn are {}, and are told with the reason."""
    pictures, problems = {}, []
    for figure in leaderboard.suite.figures:
        try:
            pictures[figure.name] = draw(figure, leaderboard, kinds)
        except (RecordError, ValueError) as error:  # the latter are Matplotlib's, of sizes that it cannot draw
            pictures[figure.name] = {}
            problems.append(f"{figure.item} is not drawn: {error}")
    return pictures, problems


def draw_claims(claims: Sequence[JudgedClaim], kinds: Iterable[str] = ("png", "svg")) -> dict[str, bytes]:
    """Draw the effects of one scale's claims; {} where none of them is judged or unresolved."""
    return _draw("claim_effects.draw_effects", kinds, claims)


def _draw(function: str, kinds: Iterable[str], *shown: object) -> dict[str, bytes]:
    from leaderboards.figures.parts import style  # matplotlib takes as long to start as the rest of a leaderboard

    with style.default_style():
        canvas = resolve_name(f"{__name__}.{function}")(*shown)
        return {} if canvas is None else {kind: style.write(canvas, kind) for kind in kinds}
