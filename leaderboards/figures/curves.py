"""Runs -> a metric over the epochs of training: the mean of the seeds in a band from the lowest to the highest."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import Curve
from leaderboards.figures.parts import style
from leaderboards.figures.parts.runs import curve_behind, name_num_seeds
from suite.spec.figures import CurveFigure
from suite.spec.profile import Place

Panels = dict[str, dict[str, Curve]]  # title -> legend label -> curve


def draw_curves(figure: CurveFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run behind it has finished."""
    found = find_curves(figure, leaderboard)
    if not any(found.values()):
        return None
    labels = list(dict.fromkeys(label for panel in figure.panels.values() for label in panel))
    labels = [label for label in labels if any(label in curves for curves in found.values())]
    marks = style.marks(labels)
    columns = style.num_columns(len(found), 3)
    seeds = name_num_seeds(
        (curve for curves in found.values() for curve in curves.values()), max(map(len, found.values()))
    )
    notes = [seeds, _name_absent(figure, leaderboard, found)]
    width, height = (6.8, 3.9) if columns == 1 else (3.3 * columns + 0.4, 2.7)
    canvas = style.new_canvas(leaderboard, figure, width, height * math.ceil(len(found) / columns) + 0.3, *notes)
    all_axes = style.panels(canvas, len(found), 3, sharey=True)
    for number, (axes, (title, curves)) in enumerate(zip(all_axes, found.items(), strict=True)):
        axes.set_title(title, fontsize=10)
        axes.set_ylabel(figure.y_label if number % columns == 0 else "")
        style.draw_curves(axes, curves, marks)
        if figure.after_parents:
            _join_to_parents(axes, curves, figure.panels[title], leaderboard, marks)
    what = style.legend_entries(marks.items(), linewidth=1.8, markersize=5)
    fitting = int(width / (0.5 + 0.066 * max(len(label) for label in labels)))
    style.add_legend(canvas, what, most=min(4 if width > 6 else 3, max(1, fitting)))
    return canvas


def find_curves(figure: CurveFigure, leaderboard: Leaderboard) -> Panels:
    """The curves of the panels that this profile plans. Cells with a failed seed have none."""
    found: Panels = {}
    for title, places in figure.panels.items():
        if any(leaderboard.cell(place) is not None for place in places.values()):
            curves = {
                label: curve_behind(leaderboard, place, figure.metric, figure.after_parents)
                for label, place in places.items()
            }
            found[title] = {label: curve for label, curve in curves.items() if curve is not None}
    return found


def _join_to_parents(
    axes: Axes,
    curves: dict[str, Curve],
    places: Mapping[str, Place],
    leaderboard: Leaderboard,
    marks: dict[str, tuple[str, str]],
) -> None:
    """Draw a dotted line from the end of a run's training to the start of the one that took its weights over."""
    cells = {label: leaderboard.cell(place) for label, place in places.items()}
    shown = [(label, one) for label, cell in cells.items() if cell is not None for one in cell.provenance.experiments]
    labels = {experiment.configuration_id: label for label, experiment in shown}
    found = ((label, labels.get(one.configuration_id)) for label, child in shown for one in child.parents)
    for label, parent in {label: parent for label, parent in found if parent is not None}.items():
        if label in curves and parent in curves:
            end, start = curves[parent], curves[label]
            ends = (end.epochs[-1], start.epochs[0]), (end.mean[-1], start.mean[0])
            axes.plot(*ends, color=marks[label][0], linestyle=":", linewidth=1.0)


def _name_absent(figure: CurveFigure, leaderboard: Leaderboard, found: Panels) -> str:
    """The note about what a panel plans but cannot show; a panel without any line says so itself."""
    absent = [
        f"{label} ({title})" if len(found) > 1 else label
        for title, curves in found.items()
        for label, place in figure.panels[title].items()
        if curves and label not in curves and leaderboard.cell(place) is not None
    ]
    return f"No finished run to show: {', '.join(absent)}." if absent else ""
