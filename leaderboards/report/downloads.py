"""Tables and figures -> the files that a page carries for its reader to download."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.report.latex import render_latex
from leaderboards.report.pictures.charts import LEARNING_CURVES, Chart
from leaderboards.report.pictures.curves_picture import draw_curves
from leaderboards.report.table_files import draw_table
from leaderboards.report.tables import TableView
from leaderboards.text.csv_files import render_csv
from suite.spec.figures import Figure


@dataclass(frozen=True)
class Download:
    """A file that the page carries; ``of`` says what it shows, for those who do not see where the button stands."""

    label: str
    file: str
    of: str
    content: bytes


def list_table_files(board: Board, table: TableView) -> list[Download]:
    """The table in every format; nothing of a table without columns."""
    if not table.columns:
        return []
    caption = f"{board.suite.paper}, {board.table.item}: ours in profile {board.profile_name}"
    name = f"{board.profile_name}.{board.table.name}"
    svg, pdf = draw_table(table, caption)
    return [
        Download("CSV", f"{name}.csv", table.title, render_csv(board).encode()),
        Download("LaTeX", f"{name}.tex", table.title, render_latex(board, caption).encode()),
        Download("SVG", f"{name}.svg", table.title, svg),
        Download("PDF", f"{name}.pdf", table.title, pdf),
    ]


def list_chart_files(chart: Chart, leaderboard: Leaderboard) -> list[Download]:
    """Learning curves as PDF. The page's script makes their SVG; the paper's own figures are downloaded where they are
    drawn."""
    if chart.name != LEARNING_CURVES:
        return []
    caption = f"{leaderboard.suite.name}, {leaderboard.profile_name}: {chart.title}"
    return [Download("PDF", f"{leaderboard.profile_name}.{chart.name}.pdf", chart.title, draw_curves(chart, caption))]


def view_figure(figure: Figure, leaderboard: Leaderboard, pictures: Mapping[str, bytes]) -> dict[str, Any]:
    """The values that a template shows of a figure that was drawn as ``svg`` and ``pdf``. The page reserves its size in
    pixels, so that nothing moves when it is drawn."""
    file = f"{leaderboard.profile_name}.{figure.name}"
    kind = type(figure).__name__.removesuffix("Figure").lower()
    width, height = size_of(pictures["svg"])
    return {
        "item": figure.item,
        "alt": f"{figure.item} of {leaderboard.suite.paper}, ours: {kind} figure",
        "file": f"{file}.svg",
        "width": width,
        "height": height,
        "downloads": [Download(kind.upper(), f"{file}.{kind}", figure.item, pictures[kind]) for kind in ("svg", "pdf")],
    }


def size_of(svg: bytes) -> tuple[int, int]:
    """Read the width and height of Matplotlib's SVG, written in points, in a page's pixels: 96 an inch."""
    _, root = next(iter(ElementTree.iterparse(io.BytesIO(svg), events=["start"])))
    width, height = (float(root.attrib[side].removesuffix("pt")) * 96 / 72 for side in ("width", "height"))
    return round(width), round(height)
