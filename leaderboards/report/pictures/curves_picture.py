"""Learning curves as a page shows them -> a PDF of them: a panel a metric, with every run that can be chosen there."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from leaderboards.figures.parts.style import GRID, MARKERS, default_style, write
from leaderboards.report.pictures.charts import Chart

_PANEL_IN = (4.5, 3.2)
_LEGEND_COLUMNS, _LEGEND_ROW_IN = 3, 0.2


def draw_curves(chart: Chart, caption: str) -> bytes:
    """Draw learning curves by Matplotlib, which writes the same bytes each time; converters of Vega's SVG do not."""
    rows = -(-len(chart.lines) // _LEGEND_COLUMNS)
    size = (_PANEL_IN[0] * len(chart.metrics), _PANEL_IN[1] + _LEGEND_ROW_IN * rows + 0.8)
    with default_style():
        canvas = Canvas(figsize=size, layout="constrained")
        canvas.suptitle(f"{caption}\n{chart.caption}", fontsize=9, parse_math=False)
        panels = canvas.subplots(1, len(chart.metrics), squeeze=False)[0]
        for panel, metric in zip(panels, chart.metrics, strict=True):
            _draw_panel(panel, chart, metric)
        handles, labels = panels[0].get_legend_handles_labels()
        legend = canvas.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, fontsize=8)
        for text in legend.get_texts():
            text.set_parse_math(False)
        return write(canvas, "pdf")


def _draw_panel(panel: Axes, chart: Chart, metric: str) -> None:
    points = [point for point in chart.spec["data"]["values"] if point["metric"] == metric]
    for number, line in enumerate(chart.lines):
        own = [point for point in points if point["line"] == line.name]
        marker = MARKERS[number % len(MARKERS)]
        x, y = _columns(own, "x", "ours")
        panel.plot(x, y, color=line.color, marker=marker, markersize=3, linewidth=1, label=line.name)
        x, low, high = _columns(own, "x", "low", "high")
        panel.fill_between(x, low, high, color=line.color, alpha=0.2, linewidth=0)
        panel.plot(*_columns(own, "x", "paper"), color=line.color, linestyle="--", linewidth=1)
    panel.set(xlabel=chart.spec["encoding"]["x"]["title"], ylabel=metric)
    panel.grid(color=GRID)


def _columns(points: Sequence[Mapping[str, float]], *names: str) -> list[list[float]]:
    """These numbers of the points that have all of them."""
    found = [point for point in points if all(name in point for name in names)]
    return [[point[name] for point in found] for name in names]
