"""Runs -> pairs of models over the epochs, the baseline dashed, and bars of the relative gain within each pair."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.logged import Curve
from leaderboards.figures.parts import style
from leaderboards.figures.parts.runs import count_seeds, curve_behind, name_missing, name_num_seeds
from leaderboards.text.notation import format_signed
from suite.spec.figures import PairFigure
from suite.spec.profile import Place


def draw_pairs(figure: PairFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run has finished. Runs that were evaluated only at the end get no curves."""
    curves = find_curves(figure, leaderboard)
    if not curves:
        return None
    pairs, names = figure.pairs.items(), [figure.baseline, figure.better]
    labels = [label for label, of in pairs if leaderboard.cell(of.baseline) or leaderboard.cell(of.better)]
    colors = [color for color, _ in style.marks(names).values()]
    models = list(zip(names, colors, ("--", "-"), strict=True))
    marks = {
        f"{name} ({label})": (shade, style.MARKERS[i % len(style.MARKERS)], line)
        for name, color, line in models
        for i, (label, shade) in enumerate(zip(labels, style.shades(color, len(labels)), strict=True))
    }
    bars = {label: marks[f"{figure.better} ({label})"][0] for label in labels}
    others = _name_partial(figure, leaderboard), name_missing(leaderboard, _places(figure), curves)
    if all(len(curve.epochs) == 1 for curve in curves.values()):
        note = "Only at the end were all of them evaluated: no curves over the epochs."
        seeds = f"Seeds: {count_seeds(curves.values())}."
        canvas = style.new_canvas(leaderboard, figure, 8.6, 4.1, seeds, note, *others)
        _draw_gains(canvas.subplots(), figure, leaderboard, bars)
        return canvas
    canvas = style.new_canvas(leaderboard, figure, 8.6, 4.1, name_num_seeds(curves.values(), len(curves)), *others)
    axes, right = canvas.subplots(1, 2, width_ratios=(5, 3))
    style.draw_curves(axes, curves, marks)
    epochs = "Epochs \N{MULTIPLICATION SIGN} fraction of the images" if figure.over_whole_sets else "Epoch"
    axes.set(xlabel=epochs, ylabel=figure.y_label)
    _draw_gains(right, figure, leaderboard, bars)
    grays = zip(style.shades(style.NEUTRAL, len(labels)), style.MARKERS, strict=False)
    what = style.legend_entries(zip(labels, grays, strict=False), linewidth=0, markersize=5)
    whose = [{"label": name, "color": color, "linestyle": line} for name, color, line in models]
    style.add_legend(canvas, what, whose, most=5)
    return canvas


def find_curves(figure: PairFigure, leaderboard: Leaderboard) -> dict[str, Curve]:
    """The curves of the models of all pairs, over the epochs that the figure counts."""
    curves = {}
    for title, place in _places(figure).items():
        curve, cell = curve_behind(leaderboard, place, figure.metric), leaderboard.cell(place)
        experiment = None if cell is None else cell.provenance.experiment
        if curve and experiment:
            share = experiment.train_fraction if figure.over_whole_sets else 1.0
            curves[title] = replace(curve, epochs=curve.epochs * share)
    return curves


def _places(figure: PairFigure) -> dict[str, Place]:
    return {
        f"{name} ({label})": place
        for label, pair in figure.pairs.items()
        for name, place in ((figure.baseline, pair.baseline), (figure.better, pair.better))
    }


def _draw_gains(axes: Axes, figure: PairFigure, leaderboard: Leaderboard, colors: Mapping[str, str]) -> None:
    """A bar for each pair; none where a run is not there, or failed."""
    style.tidy(axes)
    axes.axhline(0.0, color=style.NEUTRAL, linewidth=0.9)  # below it the baseline is the better one
    for x, (label, color) in enumerate(colors.items()):
        cell = leaderboard.cell(figure.pairs[label].gain)
        if cell is not None and cell.mean is not None and cell.is_usable:
            _draw_gain(axes, x, cell, cell.mean, color)
    axes.set_xticks(range(len(colors)), labels=list(colors))
    axes.margins(y=0.12)
    axes.set(xlim=(-0.6, len(colors) - 0.4), xlabel=figure.pairs_label, ylabel=figure.gain_label)


def _draw_gain(axes: Axes, x: float, cell: Cell, mean: float, color: str) -> None:
    """With its interval, or where there is none with its number."""
    axes.bar(x, mean, 0.7, edgecolor=color, facecolor=color if cell.status == "done" else "white")
    if cell.interval is not None:
        style.draw_interval(axes, x, mean, cell.interval, color="black", linewidth=1.2, capsize=3)
        return
    side, away = ("bottom", 2) if mean >= 0 else ("top", -2)
    text: dict[str, Any] = {"ha": "center", "va": side, "fontsize": 8, "color": style.NEUTRAL}
    axes.annotate(format_signed(mean, 1), (x, mean), (0, away), textcoords="offset points", **text)


def _name_partial(figure: PairFigure, leaderboard: Leaderboard) -> str:
    gains = [leaderboard.cell(pair.gain) for pair in figure.pairs.values()]
    shown = [cell for cell in gains if cell is not None and cell.is_usable]
    interval = "Whiskers: 95 % interval." if any(cell.interval is not None for cell in shown) else ""
    partial = "Hollow bar: not all seeds." if any(cell.status == "partial" for cell in shown) else ""
    return " ".join(filter(None, (interval, partial)))
