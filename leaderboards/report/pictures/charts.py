"""Leaderboard and its runs -> charts as data: learning curves of the runs, and the papers' line figures, in Vega-Lite.

What is drawn comes from the same curves and series as the figures.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboards.boards.board import Leaderboard
from leaderboards.figures.lines import Series, find_series
from leaderboards.figures.parts.logged import Curve, curve_behind
from leaderboards.figures.parts.style import BLACK, COLORS
from leaderboards.text.notation import scale_title
from suite.spec.figures import LineFigure
from suite.spec.profile import Place

METRICS = {"top1_percent": "Top-1 accuracy (%)", "test_loss": "Test loss", "loss": "Training loss"}
MOST_LINES = 40  # a store may have runs of more configurations
MOST_POINTS = 120  # of a line
SHOWN_AT_FIRST = 7  # lines, which differ in colour
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LEARNING_CURVES = "learning_curves"  # a figure of the paper may be called "curves"
_DASHES = ([1, 0], [6, 3], [2, 2])


@dataclass(frozen=True)
class Line:
    name: str
    color: str
    shown: bool


@dataclass(frozen=True)
class Chart:
    name: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    metrics: tuple[str, ...]  # to choose among
    spec: Mapping[str, Any]


def find_charts(leaderboard: Leaderboard) -> list[Chart]:
    curves = _curves(leaderboard)
    lines = [chart_lines(figure, leaderboard) for figure in leaderboard.suite.figures if isinstance(figure, LineFigure)]
    return [chart for chart in (*lines, curves) if chart is not None]


def _curves(leaderboard: Leaderboard) -> Chart | None:
    names = _name_configurations(leaderboard)
    found: dict[str, dict[str, Curve]] = {}
    for name, place in list(names.items())[:MOST_LINES]:
        curves = {metric: curve_behind(leaderboard, place, metric) for metric in METRICS}
        found[name] = {metric: curve for metric, curve in curves.items() if curve is not None and len(curve.epochs) > 1}
    found = {name: curves for name, curves in found.items() if curves}
    if not found:
        return None
    values = [
        {"line": name, "metric": METRICS[metric], **point}
        for name, curves in found.items()
        for metric, curve in curves.items()
        for point in _points(curve)
    ]
    papers = _papers_accuracies(leaderboard, names, found)
    left_out = f" {len(names) - MOST_LINES} more are left out." if len(names) > MOST_LINES else ""
    caption = "Lines: the mean over seeds; bands: from the lowest to the highest seed." + left_out
    caption += " Dashed: the paper's accuracy." if papers else ""
    metrics = [label for metric, label in METRICS.items() if any(metric in curves for curves in found.values())]
    lines = _lines(found)
    spec = _spec(lines, values + papers, "Epoch", metrics[0], {"type": "area", "opacity": 0.2})
    return Chart(LEARNING_CURVES, "Learning curves", caption, tuple(lines), tuple(metrics), spec)


def _name_configurations(leaderboard: Leaderboard) -> dict[str, Place]:
    """A place of each configuration, by its row's name; with its first column where a row has several."""
    entries = leaderboard.profile.entries
    rows = [(leaderboard.suite.table(entry.table).name, entry.row) for entry in entries]
    first: dict[str, Place] = {}
    known = set()
    for entry, at in zip(entries, rows, strict=True):
        place = Place(row=entry.row, column=next(iter(entry.columns)), table=at[0])
        if entry.experiment.configuration_id not in known:
            known.add(entry.experiment.configuration_id)
            name = " / ".join(filter(None, entry.row)) + (f", {place.column}" if rows.count(at) > 1 else "")
            first[name if name not in first else f"{name} ({leaderboard.suite.table(at[0]).item})"] = place
    return first


def _points(curve: Curve) -> Iterable[dict[str, float]]:
    every = math.ceil(len(curve.epochs) / MOST_POINTS)
    kept = sorted({*range(0, len(curve.epochs), every), len(curve.epochs) - 1})
    for i in kept:
        numbers = {"x": curve.epochs[i], "ours": curve.mean[i], "low": curve.low[i], "high": curve.high[i]}
        if all(map(math.isfinite, numbers.values())):
            yield {name: _short(value) for name, value in numbers.items()}


def _papers_accuracies(
    leaderboard: Leaderboard, names: Mapping[str, Place], found: Mapping[str, Mapping[str, Curve]]
) -> list[dict[str, Any]]:
    """A level line at each accuracy that the paper prints, at the paper's scale."""
    if leaderboard.profile.scale_note:
        return []
    levels = []
    for name, curves in found.items():
        cell, curve = leaderboard.cell(names[name]), curves.get("top1_percent")
        if cell and curve and cell.paper is not None and cell.metric == "top1_percent":
            ends = (float(curve.epochs[0]), float(curve.epochs[-1]))
            levels += [{"line": name, "metric": METRICS["top1_percent"], "x": x, "paper": cell.paper} for x in ends]
    return levels


def chart_lines(figure: LineFigure, leaderboard: Leaderboard) -> Chart | None:
    """Ours with intervals, the paper's dashed; None while no cell of it has a number of ours."""
    series = find_series(leaderboard.board(figure.table), figure)
    if not any(cell.is_usable for line in series for cell in line.cells):
        return None
    values = [{"line": line.label, "metric": figure.y_label, **point} for line in series for point in _of_series(line)]
    lines = _lines([line.label for line in series])
    spec = _spec(lines, values, figure.x_label, figure.y_label, {"type": "rule", "strokeWidth": 2}, figure.log_x)
    caption = f"Solid: ours with 95 % intervals; dashed: the paper's, {figure.item}. {scale_title(leaderboard)}"
    return Chart(figure.name, figure.item, caption, tuple(lines), (figure.y_label,), spec)


def _of_series(line: Series) -> Iterable[dict[str, float]]:
    for x, cell in zip(line.x, line.cells, strict=True):
        point: dict[str, float] = {"x": x}
        if cell.is_usable and cell.mean is not None:
            point["ours"] = _short(cell.mean)
            if cell.interval is not None:
                point |= {"low": _short(cell.interval.low), "high": _short(cell.interval.high)}
        if cell.paper is not None:
            point["paper"] = cell.paper
        yield point


def _lines(names: Iterable[str]) -> list[Line]:
    colors = [color if color != BLACK else "#8a6d3b" for color in COLORS]  # black would vanish in the dark
    return [Line(name, colors[i % len(colors)], i < SHOWN_AT_FIRST) for i, name in enumerate(dict.fromkeys(names))]


def _spec(
    lines: Sequence[Line],
    values: Sequence[Mapping[str, Any]],
    x_title: str,
    metric: str,
    reach: Mapping[str, Any],
    log_x: bool = False,
) -> dict[str, Any]:
    """The chart's specification.

    Args:
        lines: the lines that may be shown.
        values: points of a ``line`` and a ``metric``, at ``x``: ``ours`` from ``low`` to ``high``, or the ``paper``'s.
        x_title: the title of the x axis.
        metric: the metric that is shown first.
        reach: the mark of Vega-Lite from low to high.
        log_x: whether the x axis is logarithmic.
    """
    names = [line.name for line in lines]
    y_title = metric if {value["metric"] for value in values} == {metric} else None  # else it is chosen above

    def y(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "title": y_title, "scale": {"zero": False}}

    color = _scale_by_line(names, [line.color for line in lines])
    dash = _scale_by_line(names, [_DASHES[(i // SHOWN_AT_FIRST) % len(_DASHES)] for i in range(len(names))])
    x_scale = {"type": "log" if log_x else "linear", "nice": False, "padding": 12}
    numbers = ("x", "ours", "low", "high", "paper")
    tip = [{"field": "line"}, *({"field": name, "type": "quantitative", "format": ".4~g"} for name in numbers)]
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": 340,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": list(values)},
        "params": [
            {"name": "shown", "value": [line.name for line in lines if line.shown]},
            {"name": "metric", "value": metric},
        ],
        "transform": [{"filter": "datum.metric === metric && indexof(shown, datum.line) >= 0"}],
        "encoding": {"x": {"field": "x", "type": "quantitative", "title": x_title, "scale": x_scale}, "color": color},
        "layer": [
            {"mark": reach, "encoding": {"y": y("low"), "y2": {"field": "high"}}},
            {
                "mark": {"type": "line", "point": True, "clip": True},
                "encoding": {"y": y("ours"), "strokeDash": dash, "tooltip": tip},
                "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
            },
            {
                "transform": [{"filter": "isValid(datum.paper)"}],
                "mark": {"type": "line", "strokeDash": [5, 4], "opacity": 0.7, "point": {"filled": False}},
                "encoding": {"y": y("paper"), "tooltip": tip},
            },
        ],
    }


def _scale_by_line(names: Sequence[str], by: Sequence[object]) -> dict[str, Any]:
    return {"field": "line", "type": "nominal", "scale": {"domain": names, "range": by}}


def _short(value: float) -> float:
    return float(f"{value:.5g}")
