"""Tables and figures -> the files that a page offers for download, and the bytes that it carries along for them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.report.latex import render_latex
from leaderboards.report.pictures.charts import Chart
from leaderboards.report.pictures.curves_picture import draw_curves
from leaderboards.report.table_files import draw_table
from leaderboards.report.tables import TableView
from leaderboards.text.csv_files import render_csv
from suite.spec.figures import Figure

TYPES = {"CSV": "text/csv", "LaTeX": "application/x-tex", "SVG": "image/svg+xml", "PDF": "application/pdf"}
SUFFIXES = {"LaTeX": "tex"}  # others are their kind's name
Pictures = Mapping[str, Mapping[str, bytes]]  # figure -> format -> file


@dataclass(frozen=True)
class Offer:
    """A file that the page holds; ``of`` says what it is of, for those who do not see where the button stands."""

    label: str
    parcel: str
    file: str
    of: str

    @property
    def type(self) -> str:
        return TYPES[self.label]


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the paper's kind, which lies beside the page, too; ``parcel`` is its SVG, whose width and height in
    pixels the page keeps free: where it is drawn late, nothing moves away from under a pointer."""

    item: str
    alt: str
    file: str
    parcel: str
    width: int
    height: int
    offers: tuple[Offer, ...]


def offer_table(board: Board, table: TableView, contents: dict[str, bytes]) -> list[Offer]:
    """Offer a table in every format, and add these to the contents by their parcels' names."""
    caption = f"{board.suite.paper}, {board.table.item}: ours in profile {board.profile_name}"
    if not table.columns:
        return []
    svg, pdf = draw_table(table, caption)
    files = {
        "CSV": render_csv(board).encode(),
        "LaTeX": render_latex(board, caption).encode(),
        "SVG": svg,
        "PDF": pdf,
    }
    name = f"{board.profile_name}.{board.table.name}"
    contents |= {f"{board.table.name}.{label}": content for label, content in files.items()}
    return [
        Offer(label, f"{board.table.name}.{label}", f"{name}.{SUFFIXES.get(label, label.lower())}", table.title)
        for label in files
    ]


def offer_figure(
    figure: Figure, leaderboard: Leaderboard, pictures: Mapping[str, bytes], contents: dict[str, bytes]
) -> DrawnFigure:
    """Show a figure that was drawn, and add it to the contents.

    Args:
        figure: as the suite has it.
        leaderboard: that it was drawn of.
        pictures: the figure by its formats.
        contents: of the page, by the parcels' names; its own are added.
    """
    file = f"{leaderboard.profile_name}.{figure.name}"
    kinds = ("svg", "pdf")
    contents |= {f"{figure.name}.{kind}": pictures[kind] for kind in kinds}
    offers = tuple(Offer(kind.upper(), f"{figure.name}.{kind}", f"{file}.{kind}", figure.item) for kind in kinds)
    alt = f"{figure.item} of {leaderboard.suite.paper}, ours: {_describe(figure)}"
    return DrawnFigure(figure.item, alt, f"{file}.svg", f"{figure.name}.svg", *_size_of(pictures["svg"]), offers)


def offer_chart(chart: Chart, leaderboard: Leaderboard, contents: dict[str, bytes]) -> tuple[Offer, ...]:
    """Offer learning curves as PDF, and add it to the contents; the paper's figures are offered where they are drawn,
    and the SVG is what the page's script shows."""
    if chart.name != "curves":
        return ()
    parcel, file = f"{chart.name}.PDF", f"{leaderboard.profile_name}.{chart.name}.pdf"
    contents[parcel] = draw_curves(chart, f"{leaderboard.suite.name}, {leaderboard.profile_name}: {chart.title}")
    return (Offer("PDF", parcel, file, chart.title),)


def _size_of(svg: bytes) -> tuple[int, int]:
    """Read the width and height of Matplotlib's SVG, written in points, in a page's pixels: 96 an inch."""
    _, root = next(iter(ElementTree.iterparse(io.BytesIO(svg), events=["start"])))
    width, height = (float(root.attrib[side].removesuffix("pt")) * 96 / 72 for side in ("width", "height"))
    return round(width), round(height)


def _describe(figure: Figure) -> str:
    """Name the kind of figure in words: ``heatmap figure``."""
    return f"{type(figure).__name__.removesuffix('Figure').lower()} figure"
