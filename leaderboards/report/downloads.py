"""Tables and figures -> what a page shows of them, and the files that it carries for its reader to download."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from leaderboards.boards.board import Board, Leaderboard
from leaderboards.report.compressed import as_source
from leaderboards.report.latex import render_latex
from leaderboards.report.table_files import draw_table
from leaderboards.report.tables import TableView
from leaderboards.text.csv_files import render_csv


@dataclass(frozen=True)
class Download:
    """A file that the page carries; ``of`` says what it shows, for those who do not see where the button stands."""

    label: str
    file: str
    of: str
    content: bytes


@dataclass(frozen=True)
class FigureView:
    """A drawn figure. ``source`` is its picture; the page reserves its size in pixels."""

    item: str
    alt: str
    file: str
    source: str
    width: int
    height: int
    downloads: tuple[Download, ...] = ()


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


def view_figure(leaderboard: Leaderboard, name: str, item: str, kind: str, pictures: Mapping[str, bytes]) -> FigureView:
    """View a figure that was drawn as ``svg``, ``pdf`` and maybe ``png``.

    Args:
        leaderboard: the leaderboard that it shows.
        name: the figure's name, as in its files.
        item: its place in the paper.
        kind: Description of what is drawn, for those who do not see it.
        pictures: its files' contents by format.
    """
    file = f"{leaderboard.profile_name}.{name}"
    width, height = size_of(pictures["svg"])
    return FigureView(
        item=item,
        alt=f"{item} of {leaderboard.suite.paper}, ours: {kind}",
        file=f"{file}.svg",
        source=as_source(pictures["svg"], pictures.get("png")),
        width=width,
        height=height,
        downloads=(Download("PDF", f"{file}.pdf", item, pictures["pdf"]),),
    )


def size_of(svg: bytes) -> tuple[int, int]:
    """Read the width and height of Matplotlib's SVG, written in points, in a page's pixels: 96 an inch."""
    _, root = next(iter(ElementTree.iterparse(io.BytesIO(svg), events=["start"])))
    width, height = (float(root.attrib[side].removesuffix("pt")) * 96 / 72 for side in ("width", "height"))
    return round(width), round(height)
