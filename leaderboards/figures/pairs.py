"""Runs -> pairs of models over the epochs, the baseline dashed, and bars of the relative gain within each pair."""

from collections.abc import Mapping, Sequence
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
from suite.spec.figures import Pair, PairFigure
from suite.spec.profile import Place

Marks = Mapping[str, Mapping[str, tuple[str, str]]]  # a pair's label -> what a model of it is called -> (shade, marker)
Found = dict[str, dict[str, Curve]]  # a pair's label -> what a model of it is called -> curve


def draw_pairs(figure: PairFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run has finished. Runs that were evaluated only at the end get no curves."""
    found = find_pairs(figure, leaderboard)
    curves = [curve for sides in found.values() for curve in sides.values()]
    if not curves:
        return None
    marks = _mark(figure, list(found))
    others = _name_partial(figure, leaderboard), _name_absent(figure, leaderboard, found)
    if all(len(curve.epochs) == 1 for curve in curves):
        note = f"Seeds: {count_seeds(curves)}. Only at the end were all of them evaluated: no curves over the epochs."
        canvas = style.new_canvas(leaderboard, figure, 8.6, 4.1, note, *others)
        _draw_gains(canvas.subplots(), figure, leaderboard, marks)
        return canvas
    canvas = style.new_canvas(leaderboard, figure, 8.6, 4.1, name_num_seeds(curves, len(curves)), *others)
    axes, right = canvas.subplots(1, 2, width_ratios=(5, 3))
    _draw_curves(axes, figure, found, marks)
    _draw_gains(right, figure, leaderboard, marks)
    grays = zip(style.shades(style.NEUTRAL, len(marks)), style.MARKERS, strict=False)
    what = style.legend_entries(zip(marks, grays, strict=False), linewidth=0, markersize=5)
    lines = zip(_sides_of(figure), style.marks(_sides_of(figure)), ("--", "-"), strict=True)
    whose = [{"label": name, "color": color, "linestyle": line} for name, (color, _), line in lines]
    style.add_legend(canvas, what, whose, most=5)
    return canvas


def find_pairs(figure: PairFigure, leaderboard: Leaderboard) -> Found:
    """The curves of each pair that this profile plans, over the epochs that the figure counts."""
    found: Found = {}
    for label, pair in figure.pairs.items():
        sides = _sides(figure, pair)
        if any(leaderboard.cell(place) is not None for place in sides.values()):
            curves = {name: _curve(figure, leaderboard, place) for name, place in sides.items()}
            found[label] = {name: curve for name, curve in curves.items() if curve is not None}
    return found


def _sides(figure: PairFigure, pair: Pair) -> dict[str, Place]:
    return {figure.baseline: pair.baseline, figure.better: pair.better}


def _sides_of(figure: PairFigure) -> list[str]:
    return [figure.baseline, figure.better]


def _mark(figure: PairFigure, labels: Sequence[str]) -> Marks:
    """Each model's colour, in a shade for each pair."""
    colors = {
        name: style.shades(color, len(labels))
        for name, (color, _) in zip(_sides_of(figure), style.marks(_sides_of(figure)), strict=True)
    }
    return {
        label: {name: (of[i], style.MARKERS[i % len(style.MARKERS)]) for name, of in colors.items()}
        for i, label in enumerate(labels)
    }


def _curve(figure: PairFigure, leaderboard: Leaderboard, place: Place) -> Curve | None:
    curve, cell = curve_behind(leaderboard, place, figure.metric), leaderboard.cell(place)
    experiment = None if cell is None else cell.provenance.experiment
    if curve is None or experiment is None or not figure.over_whole_sets:
        return curve
    return replace(curve, epochs=curve.epochs * experiment.train_fraction)


def _draw_curves(axes: Axes, figure: PairFigure, found: Found, marks: Marks) -> None:
    curves = {f"{name} {label}": curve for label, sides in found.items() for name, curve in sides.items()}
    lines = {figure.baseline: "--", figure.better: "-"}
    shown = {f"{name} {label}": (*mark, lines[name]) for label, sides in marks.items() for name, mark in sides.items()}
    style.draw_curves(axes, curves, shown)
    epochs = "Epochs \N{MULTIPLICATION SIGN} fraction of the images" if figure.over_whole_sets else "Epoch"
    axes.set(xlabel=epochs, ylabel=figure.y_label)


def _draw_gains(axes: Axes, figure: PairFigure, leaderboard: Leaderboard, marks: Marks) -> None:
    """A bar for each pair; none where a run is not there, or failed."""
    style.tidy(axes)
    axes.axhline(0.0, color=style.NEUTRAL, linewidth=0.9)  # below it the baseline is the better one
    for x, (label, sides) in enumerate(marks.items()):
        cell = leaderboard.cell(figure.pairs[label].gain)
        if cell is not None and cell.mean is not None and cell.is_usable:
            _draw_gain(axes, x, cell, cell.mean, sides[figure.better][0])
    axes.set_xticks(range(len(marks)), labels=list(marks))
    axes.margins(y=0.12)
    axes.set(xlim=(-0.6, len(marks) - 0.4), xlabel=figure.pairs_label, ylabel=figure.gain_label)


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


def _name_absent(figure: PairFigure, leaderboard: Leaderboard, found: Found) -> str:
    pairs = {label: _sides(figure, pair) for label, pair in figure.pairs.items()}
    places = {f"{name} ({label})": place for label, sides in pairs.items() for name, place in sides.items()}
    return name_missing(leaderboard, places, [f"{name} ({label})" for label, sides in found.items() for name in sides])
