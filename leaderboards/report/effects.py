"""Effects, ours and the paper's -> lines of two small plots side by side: never one axis for what is not comparable."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.effects import find_effects
from leaderboards.boards.metrics import is_accuracy
from leaderboards.report.pictures.plots import Plot, plot_of, scale
from leaderboards.text.labels import label
from leaderboards.text.notation import NOTHING, format_difference, format_signed, paper_decimals

EffectView = dict[str, Any]  # one effect: its texts, the numbers that it is sorted by, and its two plots


@dataclass(frozen=True)
class EffectsView:
    """The effects of one column: ``keys`` names what their rows differ in, ``told`` says against what."""

    keys: str
    told: str
    lines: tuple[EffectView, ...]


def view_effects(cells: Iterable[tuple[str, Cell | None]]) -> list[EffectView]:
    """View effects by name. Those in points share a scale for ours and one for the paper's; others have their own."""
    found = list(enumerate(cells))
    ours: dict[tuple[str, ...], Plot] = {}
    papers: dict[tuple[str, ...], Plot] = {}
    for in_points in (True, False):
        of = [(str(i), cell) for i, (_, cell) in found if cell and bool(is_accuracy(cell.metric)) is in_points]
        for group in [of] if in_points else [[one] for one in of]:
            ours |= scale({(i,): plot_of(cell) for i, cell in group})
            papers |= scale({(i,): Plot(cell.paper, zero=0.0) for i, cell in group})
    return [_view(name, cell, ours.get((str(i),)), papers.get((str(i),))) for i, (name, cell) in found]


def view_boards_effects(leaderboard: Leaderboard) -> EffectsView | None:
    """View by how much the numbers in the headline's column exceed those that they compete with; where none compete,
    the headline's difference; None without any."""
    place, suite = leaderboard.suite.headline.better, leaderboard.suite
    board = leaderboard.board(place.table)
    effects = board.effects or find_effects(suite, board.table, board.cells)
    own = [(key, of) for key, of in effects.items() if key[1] == place.column and of.difference]
    if not any(of.difference and of.difference.is_usable for _, of in own):
        of_headline = view_effects([(suite.headline.text, leaderboard.headline)])
        return EffectsView("Difference", suite.headline.text, tuple(of_headline)) if of_headline[0]["plot"] else None
    row, column = own[0][1].baseline
    against = label(column) if column != place.column else " / ".join(filter(None, row))
    return EffectsView(
        keys=", ".join(map(label, board.paper.row_keys)),
        told=f"{label(place.column)}: by how many points it exceeds {against}",
        lines=tuple(view_effects((" / ".join(filter(None, key[0])), of.difference) for key, of in own)),
    )


def _view(name: str, cell: Cell | None, plot: Plot | None, paper_plot: Plot | None) -> EffectView:
    view: EffectView = {"name": name, "ours": NOTHING, "paper": NOTHING, "mean": None, "papers": None, "seeds": 0}
    if cell:
        ours, paper = format_difference(cell), format_signed(cell.paper, paper_decimals(cell))
        seeds = 0 if cell.mean is None else len(cell.estimate.values) or cell.coverage.num_done
        view |= {"ours": ours, "paper": paper, "mean": cell.mean, "papers": cell.paper, "seeds": seeds}
    return {**view, "plot": plot, "paper_plot": paper_plot}
