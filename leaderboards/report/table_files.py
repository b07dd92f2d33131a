"""A table as a template shows it -> a picture of it, SVG and PDF, with the horizontal rules of a printed table."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from leaderboards.figures.parts.style import default_style, write
from leaderboards.report.rendering import render_picture
from leaderboards.report.tables import CellView, TableView
from leaderboards.text.escaping import spell_controls

_CHARACTER, _LINE, _GAP, _MARGIN = 7.0, 16.0, 18.0, 10.0  # pixels, at 12 a letter; wide enough for digits


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    anchor: str  # of SVG: start, end
    text: str
    kind: str  # a class of the picture's style


def draw_table(table: TableView, caption: str) -> tuple[bytes, bytes]:
    """Draw the whole table as SVG and PDF; the same bytes for the same table."""
    columns = [table.labels[name] for name in (*table.keys, *table.columns)]
    rows = [
        [[name] for name in columns],
        *([*([key or "-"] for key in keys), *map(_lines, cells)] for keys, cells in table.rows),
    ]
    widths = [max(len(line) for row in rows for line in row[i]) * _CHARACTER + _GAP for i in range(len(columns))]
    texts, rules, y = [Text(_MARGIN, _MARGIN + _LINE, "start", caption, "caption")], [], _MARGIN + 1.6 * _LINE
    for number, row in enumerate(rows):
        rules += [y] if number < 2 else []
        texts += _place(row, widths, y, len(table.keys), "head" if number == 0 else "ours")
        y += _LINE * max(map(len, row)) + 0.5 * _LINE
    rules.append(y)
    width = max(sum(widths), len(caption) * _CHARACTER) + 2 * _MARGIN
    size = round(width), round(y + _MARGIN)
    svg = render_picture(texts=texts, rules=rules, width=size[0], height=size[1], margin=_MARGIN)
    return svg.encode(), _draw_pdf(texts, rules, *size)


def _draw_pdf(texts: Sequence[Text], rules: Sequence[float], width: int, height: int) -> bytes:
    """Draw the same by Matplotlib, which writes the same bytes each time; converters of SVG do not."""
    with default_style():
        canvas = Canvas(figsize=(width / 72, height / 72))
        for text in texts:
            is_bold = text.kind in ("caption", "head")
            canvas.text(
                text.x / width, 1 - text.y / height, spell_controls(text.text),
                ha="right" if text.anchor == "end" else "left", parse_math=False,
                fontsize=9 if text.kind == "small" else 11, weight="bold" if is_bold else "normal",
            )  # fmt: skip
        for y in rules:
            ends = [_MARGIN / width, 1 - _MARGIN / width]
            canvas.add_artist(Line2D(ends, [1 - y / height] * 2, color="black", linewidth=0.8))
        return write(canvas, "pdf")


def _place(row: Sequence[Sequence[str]], widths: Sequence[float], top: float, num_keys: int, kind: str) -> list[Text]:
    placed, left = [], _MARGIN
    for i, (lines, width) in enumerate(zip(row, widths, strict=True)):
        x, anchor = (left, "start") if i < num_keys else (left + width - _GAP / 2, "end")
        placed += [
            Text(round(x, 1), round(top + _LINE * (number + 1), 1), anchor, line, kind if number == 0 else "small")
            for number, line in enumerate(lines)
        ]
        left += width
    return placed


def _lines(cell: CellView | None) -> list[str]:
    if cell is None:
        return ["-"]
    others = (f"paper {cell.paper}" if cell.paper else "", cell.compared, cell.verdict)
    return [f"{cell.ours} ({cell.status}) {cell.ranks}".strip(), *filter(None, others)]
