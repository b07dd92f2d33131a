"""Board -> the paper's line figure: our lines solid, the paper's dashed, the relative gain on an axis of its own."""

from __future__ import annotations

import io
import math
import textwrap
from itertools import zip_longest
from typing import Any

from leaderboards.aggregate import Board, Cell
from leaderboards.render import scale_title
from suite.spec import LineFigure

# Okabe and Ito's colours, told apart by the colour-blind; markers repeat the distinction in black and white.
LINE_STYLES = (("#D55E00", "o"), ("#0072B2", "s"), ("#CC79A7", "^"), ("#E69F00", "v"), ("#56B4E9", "P"))
GAIN_STYLE = ("#009E73", "D")
NEUTRAL = "#555555"


def draw_figure(board: Board, figure: LineFigure) -> bytes:
    """The figure as PNG, the same bytes for the same board."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's own style must not change the bytes
        canvas = Figure(figsize=(7.2, 4.8), dpi=160, layout="constrained")
        axes = canvas.add_subplot()
        _draw_lines(axes, board, figure)
        if figure.gain_column is not None:
            _draw_gain(axes.twinx(), board, figure)
        _label_axes(axes, board, figure)
        _add_legend(canvas, _what(figure), _whose(board))
        png = io.BytesIO()
        canvas.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


def _draw_lines(axes: Any, board: Board, figure: LineFigure) -> None:
    for column, (color, marker) in zip(figure.lines.values(), _styles(figure), strict=True):
        _draw_column(axes, board, figure, column, color, marker)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def _draw_gain(axes: Any, board: Board, figure: LineFigure) -> None:
    color, marker = GAIN_STYLE
    assert figure.gain_column is not None
    _draw_column(axes, board, figure, figure.gain_column, color, marker)
    if axes.dataLim.ymin < 0:
        axes.axhline(0.0, color=color, linewidth=0.7)  # below it the baseline is the better one
    else:
        axes.set_ylim(bottom=0.0)
    axes.set_ylabel(figure.gain_label, color=color)
    axes.tick_params(axis="y", colors=color)
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_color(color)


def _draw_column(axes: Any, board: Board, figure: LineFigure, column: str, color: str, marker: str) -> None:
    """The paper's line, then ours above it; a partial cell's marker is hollow, a failed cell has none."""
    index = board.paper.row_keys.index(figure.x_key)
    cells = [board.cells[row, column] for row in board.paper.rows if (row, column) in board.cells]
    x = [float(cell.row[index]) for cell in cells]
    paper = [_gap_for_none(cell.paper) for cell in cells]
    axes.plot(x, paper, color=color, alpha=0.5, linestyle="--", linewidth=1.3, marker=marker, markersize=3.5)
    ours = [_gap_for_none(cell.mean if _is_shown(cell) else None) for cell in cells]
    axes.plot(x, ours, color=color, linewidth=2)
    for place, mean, cell in zip(x, ours, cells, strict=True):
        if cell.half_width is not None:
            axes.errorbar([place], [mean], yerr=[cell.half_width], color=color, linewidth=1.6, capsize=3.5)
        face = color if cell.status == "done" else "white"
        axes.plot([place], [mean], color=color, marker=marker, markersize=6.5, markerfacecolor=face, zorder=5)


def _is_shown(cell: Cell) -> bool:
    return cell.mean is not None and cell.status != "failed"


def _gap_for_none(value: float | None) -> float:
    """NaN for None: the line breaks where there is no number, rather than running on as if there were one."""
    return math.nan if value is None else value


def _styles(figure: LineFigure) -> list[tuple[str, str]]:
    return [LINE_STYLES[i % len(LINE_STYLES)] for i in range(len(figure.lines))]


def _label_axes(axes: Any, board: Board, figure: LineFigure) -> None:
    from matplotlib.ticker import NullLocator

    index = board.paper.row_keys.index(figure.x_key)
    ticks = {row[index]: float(row[index]) for row in board.paper.rows}
    if figure.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(ticks.values()), labels=list(ticks))
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.spines["top"].set_visible(False)
    axes.set_title(textwrap.fill(board.suite.question, 70), loc="left", fontsize=11, fontweight="bold", pad=20)
    below_title = {"xy": (0, 1), "xycoords": "axes fraction", "xytext": (0, 7), "textcoords": "offset points"}
    axes.annotate(scale_title(board), **below_title, fontsize=9, color=NEUTRAL)


def _what(figure: LineFigure) -> list[dict[str, Any]]:
    """Legend: what is measured, by colour and marker."""
    styles = [(label, *style) for label, style in zip(figure.lines, _styles(figure), strict=True)]
    if figure.gain_column is not None:
        styles.append((f"{figure.gain_label}, right axis", *GAIN_STYLE))
    return [{"label": label, "color": color, "marker": marker, "linewidth": 2} for label, color, marker in styles]


def _whose(board: Board) -> list[dict[str, Any]]:
    """Legend: whose numbers they are, by line style."""
    shown = [cell for cell in board.cells.values() if _is_shown(cell)]
    interval = ", 95 % interval" if any(cell.half_width is not None for cell in shown) else ""
    whose: list[dict[str, Any]] = [
        {"label": f"ours{interval}", "linewidth": 2},
        {"label": f"paper, {board.suite.item}", "linewidth": 1.3, "linestyle": "--", "alpha": 0.6},
    ]
    if any(cell.status == "partial" for cell in shown):
        whose.append({"label": "ours, not all seeds", "linestyle": "", "marker": "o", "markerfacecolor": "white"})
    return [{"color": NEUTRAL, **style} for style in whose]


def _add_legend(canvas: Any, *rows: list[dict[str, Any]]) -> None:
    """Below the axes, where no line can run under it. Matplotlib fills it by columns, hence the interleaving."""
    from matplotlib.lines import Line2D

    nothing = {"label": " ", "linestyle": ""}
    columns = list(zip_longest(*rows, fillvalue=nothing))
    handles = [Line2D([], [], **style) for column in columns for style in column]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(columns), frameon=False, fontsize=9)
