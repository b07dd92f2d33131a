"""A leaderboard, the figures that were drawn of it and the claims on it -> its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboards.boards import Board, Leaderboard
from leaderboards.cells import STATUSES
from leaderboards.claim_pages import write_effect, write_papers_effect
from leaderboards.csv_files import render_csv
from leaderboards.judged_claims import JudgedClaim
from leaderboards.legend import explain
from leaderboards.notation import scale_title, write_headline
from leaderboards.notes import COMPARISON, find_notes, write_challenges
from leaderboards.report.charts import Chart, find_charts
from leaderboards.report.latex import render_latex
from leaderboards.report.library import charts_library
from leaderboards.report.packed import Parcels
from leaderboards.report.picture import draw_table
from leaderboards.report.rendering import find_links, render
from leaderboards.report.runs import COLUMNS, RunReader, RunsOfCell
from leaderboards.report.tables import TableView, view_table
from suite.figures import Figure

BUDGET = 850_000  # bytes that a page may carry along beside its tables and the library of charts
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
    """``parcel`` is "" where the figure is too large for the page."""

    item: str
    alt: str
    file: str
    parcel: str
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class LiveTable:
    """The table of runs at work that a served page fills and keeps up to date.

    ``columns`` of which ``texts`` hold no numbers; ``state`` is where the page asks for them, and learns that there is
    another board than ``board``.
    """

    columns: Sequence[str]
    texts: Sequence[str]
    state: str
    board: str


def render_suite_page(
    leaderboard: Leaderboard,
    store: Path,
    pictures: Pictures,
    claims: Sequence[JudgedClaim] = (),
    above: str = "",
    live: LiveTable | None = None,
) -> str:
    """Make the page of one suite at one scale.

    Args:
        leaderboard: what it shows.
        store: that the runs behind it are in.
        pictures: the figures that were drawn.
        claims: that speak of this suite, judged at this scale.
        above: the folder with the index and the claims' pages, from this page; "" where there are none.
        live: for a page that is served; None: a file, which asks nobody for anything.
    """
    suite, parcels, runs = leaderboard.suite, Parcels(BUDGET), dict[RunsOfCell, int]()
    reader = RunReader(leaderboard, store)
    tables = [view_table(board, reader, runs) for board in leaderboard.tables.values()]
    parcels.add_data("runs", {"columns": COLUMNS, "cells": [vars(of_cell) for of_cell in runs]})
    shown = zip(leaderboard.tables.values(), tables, strict=True)
    offers = {table.name: _offer_table(board, table, parcels) for board, table in shown}
    charts = [chart for chart in find_charts(leaderboard, store) if parcels.add_data(f"chart-{chart.name}", chart.spec)]
    has_charts = bool(charts or live)  # they may come while a served page is open
    return render(
        "live.html.j2" if live else "suite.html.j2",
        ("parcels", "tables", "runs", *(["charts"] if has_charts else []), *(["live"] if live else [])),
        charts_library() if has_charts else b"",
        asks_server=live is not None,
        live=live,
        title=f"{suite.name}, {leaderboard.profile_name}: {suite.question}",
        suite=suite.name,
        source=f"{suite.paper}, {suite.item}",
        question=suite.question,
        headline=f"{write_headline(leaderboard)}.",
        scale=scale_title(leaderboard),
        scale_note=leaderboard.profile.scale_note,
        is_papers_scale=not leaderboard.profile.scale_note,
        counts={status: leaderboard.count(status) for status in STATUSES},
        tables=tables,
        offers=offers,
        charts=[_view_chart(chart, leaderboard) for chart in charts],
        figures=[
            _view_figure(figure, leaderboard, pictures[figure.name], parcels)
            for figure in suite.figures
            if pictures.get(figure.name)
        ],
        claims=[_view_claim(judged, above) for judged in claims],
        challengers=list(suite.challengers.values()),
        comparison=COMPARISON,
        challenges=write_challenges(leaderboard),
        notes=find_notes(leaderboard),
        legend=explain(leaderboard),
        footnotes=suite.footnotes,
        links=find_links(above) if above else [],
        parcels=parcels.contents,
    )


def _offer_table(board: Board, table: TableView, parcels: Parcels) -> list[Offer]:
    caption = f"{board.suite.paper}, {board.table.item}: ours in profile {board.profile_name}"
    if not table.columns:
        return []
    svg, pdf = draw_table(table, caption)
    contents = {
        "CSV": render_csv(board).encode(),
        "LaTeX": render_latex(board, caption).encode(),
        "SVG": svg,
        "PDF": pdf,
    }
    name = f"{board.profile_name}.{board.table.name}"
    return [
        Offer(label, f"{board.table.name}.{label}", f"{name}.{SUFFIXES.get(label, label.lower())}", table.title)
        for label, content in contents.items()
        if parcels.add(f"{board.table.name}.{label}", content)
    ]


def _view_figure(
    figure: Figure, leaderboard: Leaderboard, pictures: Mapping[str, bytes], parcels: Parcels
) -> DrawnFigure:
    file = f"{leaderboard.profile_name}.{figure.name}"
    fitting = [kind for kind in ("svg", "pdf") if parcels.add(f"{figure.name}.{kind}", pictures[kind])]
    offers = tuple(Offer(kind.upper(), f"{figure.name}.{kind}", f"{file}.{kind}", figure.item) for kind in fitting)
    alt = f"{figure.item} of {leaderboard.suite.paper}, ours: {_describe(figure)}"
    return DrawnFigure(figure.item, alt, f"{file}.svg", f"{figure.name}.svg" if "svg" in fitting else "", offers)


def _describe(figure: Figure) -> str:
    """Name the kind of figure in words: ``heatmap figure``."""
    return f"{type(figure).__name__.removesuffix('Figure').lower()} figure"


def _view_chart(chart: Chart, leaderboard: Leaderboard) -> dict[str, object]:
    file = f"{leaderboard.profile_name}.{chart.name}.svg"
    return {**vars(chart), "parcel": f"chart-{chart.name}", "file": file, "offers": ()}


def _view_claim(judged: JudgedClaim, above: str) -> dict[str, str]:
    page = f"{above}/claims/{judged.paper.name}.html#{judged.scale}-{judged.claim.name}" if above else ""
    return {
        "verdict": judged.verdict,
        "sense": judged.claim.sense,
        "section": judged.claim.section,
        "effect": write_effect(judged),
        "paper": write_papers_effect(judged),
        "href": page,
    }
