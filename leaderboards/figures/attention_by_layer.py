"""A run's log -> how local its layers look, and how far their gates trust position, over the epochs of training."""

from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.logged import LayerCurves, read_layers
from leaderboards.figures.parts import style
from leaderboards.figures.parts.runs import read_first_runs
from suite.spec.figures import LayerFigure

_GATES_IN_ROW = 5
_MODELS_IN_ROW = 3
_LEAST_REACH = 0.25  # patches of nonlocality above and below lines that hardly move
_GATE = "Gate \N{GREEK SMALL LETTER SIGMA}(\N{GREEK SMALL LETTER LAMDA})"


def draw_layers(figure: LayerFigure, leaderboard: Leaderboard) -> Canvas | None:
    """The figure; None while no run behind it has finished, or none has logged the quantity."""
    found, notes = read_first_runs(leaderboard, figure.models, lambda run: read_layers(run, figure.quantity))
    if not found:
        return None
    draw = _draw_gates if figure.quantity == "gates" else _draw_nonlocality
    return draw(figure, leaderboard, found, notes)


def _draw_nonlocality(
    figure: LayerFigure, leaderboard: Leaderboard, found: dict[str, LayerCurves], notes: tuple[str, ...]
) -> Canvas:
    """A panel per model, a line per layer: the mean over its heads."""
    columns = style.num_columns(len(found), _MODELS_IN_ROW)
    width = max(5.6, 3.2 * columns + 1.3)
    canvas = style.new_canvas(leaderboard, figure, width, 3.2 * ceil(len(found) / columns), "Means over heads.", *notes)
    colors = style.depth_colors(max(len(curves.layers) for curves in found.values()))
    all_axes = style.panels(canvas, len(found), _MODELS_IN_ROW, sharey=True)
    for number, (axes, (title, curves)) in enumerate(zip(all_axes, found.items(), strict=True)):
        style.tidy(axes)
        axes.set_title(title, fontsize=10)
        for mean, color in zip(curves.means(), colors, strict=False):
            axes.plot(curves.epochs, mean, color=color, linewidth=1.6, marker=_marker(curves), markersize=3)
        axes.set(xlabel="Epoch", ylabel="Nonlocality (patches)" if number % columns == 0 else "")
    low, high = all_axes[0].get_ylim()  # of all, as they share it
    middle = (low + high) / 2
    is_flat = high - low < 2 * _LEAST_REACH  # a hundredth of a patch would fill the panel
    all_axes[0].set_ylim((middle - _LEAST_REACH, middle + _LEAST_REACH) if is_flat else (0, high))
    handles = [Line2D([], [], color=color, label=f"Layer {i}") for i, color in enumerate(colors, start=1)]
    canvas.legend(handles=handles, loc="outside right center", frameon=False, fontsize=8)
    return canvas


def _draw_gates(
    figure: LayerFigure, leaderboard: Leaderboard, found: dict[str, LayerCurves], notes: tuple[str, ...]
) -> Canvas:
    """Rows of panels per model, a panel per GPSA layer: thin lines for its heads, a black one for their mean."""
    columns = min(_GATES_IN_ROW, max(len(curves.layers) for curves in found.values()))
    rows = {title: ceil(len(curves.layers) / columns) for title, curves in found.items()}
    width, num_rows = max(5.6, 1.75 * columns + 1.0), sum(rows.values())
    canvas = style.new_canvas(leaderboard, figure, width, 1.85 * num_rows + 0.3, *notes)
    grid = canvas.subplots(num_rows, columns, squeeze=False, sharey=True)
    top = 0
    for title, curves in found.items():
        panels = list(grid[top : top + rows[title]].ravel())
        for number, axes in enumerate(panels):
            if number >= len(curves.layers):
                axes.remove()
                continue
            _draw_gates_of_layer(axes, curves, number)
            axes.set_ylabel(f"{title}\n{_GATE}" if number % columns == 0 else "")
            if number + columns >= len(curves.layers):
                axes.set_xlabel("Epoch")
        top += rows[title]
    thin = {"label": "single heads, each in a colour", "color": style.COLORS[1], "linewidth": 1.0}
    style.add_legend(canvas, [{"label": "mean over heads", "color": "black", "linewidth": 2.0}, thin])
    return canvas


def _draw_gates_of_layer(axes: Axes, curves: LayerCurves, number: int) -> None:
    style.tidy(axes)
    axes.set_title(f"GPSA layer {number + 1}", fontsize=9)
    colors = [color for color in style.COLORS if color != style.BLACK]  # which is the mean
    for head, values in enumerate(curves.layers[number].T):
        line = "-" if head < len(colors) else "--"
        axes.plot(curves.epochs, values, color=colors[head % len(colors)], linewidth=1.0, linestyle=line)
    axes.plot(curves.epochs, curves.means()[number], color="black", linewidth=2.0, marker=_marker(curves), markersize=4)
    axes.set_ylim(0, 1)


def _marker(curves: LayerCurves) -> str:
    """A dot at each measurement where there are so few that a line alone would pretend to know more."""
    return "o" if len(curves.epochs) <= 10 else ""
