"""A table as a template shows it -> a picture of it, SVG and PDF, with the horizontal rules of a printed table."""

import re
import textwrap
from functools import partial
from itertools import accumulate, chain, repeat

import matplotlib
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from leaderboards.figures.parts.style import default_style, write
from leaderboards.report.tables import CellView, TableView
from leaderboards.text.escaping import spell_controls

_CHARACTER, _LINE, _GAP, _MARGIN = 7.0, 16.0, 18.0, 10.0  # points, at 11 a letter; wide enough for digits
_LONGEST, _LARGEST = 300, 14_400.0  # letters of the caption; points of a PDF's side
_fold = partial(textwrap.wrap, width=60)
_NEEDLESS = rb'(?s) transform="rotate\(-0 [^"]*"|<!--.*?-->\n *|<metadata>.*?</metadata>\n *'  # in an SVG of texts


def draw_table(table: TableView, caption: str) -> tuple[bytes, bytes]:
    """Draw the whole table as SVG and PDF; the same bytes for the same table."""
    caption = caption[:_LONGEST]
    columns = [table.labels[name] for name in (*table.keys, *table.columns)]
    rows = [
        [_fold(name) for name in columns],
        *([*(_fold(key or "-") for key in keys), *map(_lines, cells)] for keys, cells in table.rows),
    ]
    widths = [max(len(line) for row in rows for line in row[i]) * _CHARACTER + _GAP for i in range(len(columns))]
    lefts = list(accumulate(widths, initial=_MARGIN))
    tops = list(accumulate((_LINE * (max(map(len, row)) + 0.5) for row in rows), initial=_MARGIN + 1.6 * _LINE))
    texts = [(_MARGIN, _MARGIN, "left", "bold", [caption])]
    for row, top, weight in zip(rows, tops, chain(["bold"], repeat("normal")), strict=False):
        for i, lines in enumerate(row):
            x, side = (lefts[i], "left") if i < len(table.keys) else (lefts[i + 1] - _GAP / 2, "right")
            texts.append((x, top + 0.25 * _LINE, side, weight, lines))
    width, height = max(lefts[-1], len(caption) * _CHARACTER) + _MARGIN, tops[-1] + _MARGIN
    scale = min(1.0, _LARGEST / max(width, height))
    with default_style():
        # Outlines of all digits would be many times as long as the text itself.
        matplotlib.rcParams.update({"svg.fonttype": "none", "font.family": "DejaVu Sans"})
        canvas = Canvas(figsize=(scale * width / 72, scale * height / 72))
        for x, y, side, weight, lines in texts:
            place, text = (x / width, 1 - y / height), spell_controls("\n".join(lines))
            canvas.text(*place, text, ha=side, va="top", fontsize=11 * scale, weight=weight, parse_math=False)
        for y in (*tops[:2], tops[-1]):
            ends = [_MARGIN / width, 1 - _MARGIN / width]
            canvas.add_artist(Line2D(ends, [1 - y / height] * 2, color="black", linewidth=0.8))
        return re.sub(_NEEDLESS, b"", write(canvas, "svg")), write(canvas, "pdf")


def _lines(cell: CellView | None) -> list[str]:
    if cell is None:
        return ["-"]
    others = (f"paper {cell.paper}" if cell.paper else "", cell.compared, cell.verdict)
    lines = [f"{cell.ours} ({cell.status}) {cell.ranks}".strip(), *filter(None, others)]
    return [part for line in lines for part in _fold(line)]
