"""A leaderboard, the figures that were drawn of it and the claims on it -> its page."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import STATUSES
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.compressed import as_json, compress_within
from leaderboards.report.downloads import Download, list_chart_files, list_table_files, view_figure
from leaderboards.report.library import charts_library
from leaderboards.report.pictures.charts import find_charts
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.report.runs_behind import COLUMNS, RunReader, RunsOfCell
from leaderboards.report.tables import view_table
from leaderboards.text.claims import format_claim
from leaderboards.text.custom_models import COMPARISON, write_comparisons
from leaderboards.text.legend import explain
from leaderboards.text.notation import format_power, make_headline, scale_title
from leaderboards.text.notes import find_notes

MOST_BYTES = 1_500_000  # of a page, unless its tables and notes alone have more
_CHART = "chart-"  # before a chart's name: the name of its embedded specification
Pictures = Mapping[str, Mapping[str, bytes]]  # figure -> format -> file


@dataclass(frozen=True)
class LiveTable:
    """The table of runs at work that a served page keeps up to date."""

    columns: Sequence[str]
    texts: Sequence[str]  # columns that hold no numbers
    state: str  # the address at which the page asks for the runs and for the version of the board
    board: str = ""  # the version that the page shows


def render_suite_page(
    leaderboard: Leaderboard,
    pictures: Pictures,
    claims: Sequence[JudgedClaim] = (),
    above: str = "",
    live: LiveTable | None = None,
    grid: str = "",
) -> str:
    """Render the page of one suite at one scale.

    Args:
        leaderboard: the board that it shows.
        pictures: the figures that were drawn.
        claims: the claims about this suite, judged at this scale.
        above: the path from the page to the folder of the index, claims and findings pages; "": there are none.
        live: the table of the served page of a grid at work; None: any other page.
        grid: the address of that page, from another served page; "": a file, which asks nobody for anything.
    """
    suite, runs = leaderboard.suite, dict[RunsOfCell, int]()
    reader = RunReader(leaderboard)
    tables = [view_table(board, reader, runs) for board in leaderboard.tables.values()]
    boards = zip(leaderboard.tables.values(), tables, strict=True)
    downloads = {table.name: list_table_files(board, table) for board, table in boards}
    charts = [
        {
            **vars(chart),
            "spec_name": f"{_CHART}{chart.name}",
            "file": f"{leaderboard.profile_name}.{chart.name}.svg",
            "downloads": list_chart_files(chart, leaderboard),
        }
        for chart in find_charts(leaderboard)
    ]
    drawn = [figure for figure in suite.figures if pictures.get(figure.name)]
    figures = [view_figure(figure, leaderboard, pictures[figure.name]) for figure in drawn]
    contents = {
        "runs": as_json({"columns": COLUMNS, "cells": [vars(of_cell) for of_cell in runs]}),
        **_contents_of(downloads.values()),
        **{chart["spec_name"]: as_json(chart["spec"]) for chart in charts},
        **_contents_of(figure["downloads"] for figure in figures),
        **_contents_of(chart["downloads"] for chart in charts),
    }
    make = functools.partial(
        _render,
        live=live,
        is_served=live is not None or bool(grid),
        title=f"{suite.name}, {leaderboard.profile_name}: {suite.question}",
        suite=suite,
        profile=leaderboard.profile,
        headline=f"{make_headline(leaderboard).told}.",
        power=format_power(leaderboard),
        scale=scale_title(leaderboard),
        counts={status: leaderboard.count(status) for status in STATUSES},
        tables=tables,
        downloads=downloads,
        charts=charts,
        figures=figures,
        claims=[{**format_claim(judged), "href": above and f"{above}/claims/{_address(judged)}"} for judged in claims],
        comparison=COMPARISON,
        comparisons=write_comparisons(leaderboard),
        notes=find_notes(leaderboard),
        legend=explain(leaderboard),
        links=find_links(above, grid) if above else [],
        names=set(contents),
    )
    empty = make(embedded=dict.fromkeys(contents, ""))
    return make(embedded=compress_within(MOST_BYTES - len(empty.encode()), contents))


def _contents_of(downloads: Iterable[Sequence[Download]]) -> dict[str, bytes]:
    return {download.file: download.content for of_one in downloads for download in of_one}


def _render(
    embedded: Mapping[str, str], names: set[str], live: LiveTable | None, is_served: bool, **shown: object
) -> str:
    """Render the page with the contents that fit, and name the others."""
    has_charts = is_served or any(name.startswith(_CHART) for name in embedded)  # they may come while it is open
    has_runs = is_served or "runs" in embedded
    scripts = [name for name, is_needed in (("runs", has_runs), ("charts", has_charts)) if is_needed]
    kept = ("renew", "live") if live else FOLLOWED if is_served else ()
    return render(
        "live.html.j2" if live else "suite.html.j2",
        ("embedded", "tables", *scripts, *kept),
        charts_library() if has_charts else b"",
        asks_server=is_served,
        live=live,
        embedded=embedded,
        left_out=sorted(names - set(embedded)),
        **shown,
    )


def _address(judged: JudgedClaim) -> str:
    return f"{judged.paper.name}.html#{judged.scale}-{judged.claim.name}"
