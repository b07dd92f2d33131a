"""A leaderboard, the figures that were drawn of it and the claims on it -> its page."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import STATUSES
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.library import charts_library
from leaderboards.report.offers import Pictures, offer_chart, offer_figure, offer_table
from leaderboards.report.packed import as_json, pack_within
from leaderboards.report.pictures.charts import Chart, find_charts
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.report.runs import COLUMNS, RunReader, RunsOfCell
from leaderboards.report.tables import view_table
from leaderboards.text.claims import write_effect, write_papers_effect
from leaderboards.text.custom_models import COMPARISON, write_comparisons
from leaderboards.text.legend import explain
from leaderboards.text.notation import scale_title, write_headline, write_power
from leaderboards.text.notes import find_notes

MOST_BYTES = 1_500_000  # of a page, unless its tables and notes alone have more
_CHART = "chart-"  # before its name, that of its parcel


@dataclass(frozen=True)
class LiveTable:
    """The table of runs at work that a served page fills and keeps up to date.

    ``columns`` of which ``texts`` hold no numbers; ``state`` is where the page asks for them, and learns that there is
    another board than ``board``.
    """

    columns: Sequence[str]
    texts: Sequence[str]
    state: str
    board: str = ""


def render_suite_page(
    leaderboard: Leaderboard,
    pictures: Pictures,
    claims: Sequence[JudgedClaim] = (),
    above: str = "",
    live: LiveTable | None = None,
    grid: str = "",
) -> str:
    """Make the page of one suite at one scale.

    Args:
        leaderboard: what it shows.
        pictures: the figures that were drawn.
        claims: that speak of this suite, judged at this scale.
        above: the folder with the index, the claims' and the findings' pages, from this page; "" where there are none.
        live: of the page of a grid at work, which is served; None: any other.
        grid: where that is, from another page that is served; "": a file, which asks nobody for anything.
    """
    suite, runs, contents = leaderboard.suite, dict[RunsOfCell, int](), dict[str, bytes]()
    reader = RunReader(leaderboard)
    tables = [view_table(board, reader, runs) for board in leaderboard.tables.values()]
    contents["runs"] = as_json({"columns": COLUMNS, "cells": [vars(of_cell) for of_cell in runs]})
    shown = zip(leaderboard.tables.values(), tables, strict=True)
    offers = {table.name: offer_table(board, table, contents) for board, table in shown}
    charts = find_charts(leaderboard)
    contents |= {_parcel_of(chart): as_json(chart.spec) for chart in charts}
    drawn = [figure for figure in suite.figures if pictures.get(figure.name)]
    figures = [offer_figure(figure, leaderboard, pictures[figure.name], contents) for figure in drawn]
    views = [_view_chart(chart, leaderboard, contents) for chart in charts]
    make = functools.partial(
        _render,
        live=live,
        is_served=live is not None or bool(grid),
        title=f"{suite.name}, {leaderboard.profile_name}: {suite.question}",
        suite=suite.name,
        source=f"{suite.paper}, {suite.item}",
        question=suite.question,
        headline=f"{write_headline(leaderboard)}.",
        power=write_power(leaderboard),
        scale=scale_title(leaderboard),
        scale_note=leaderboard.profile.scale_note,
        is_papers_scale=not leaderboard.profile.scale_note,
        counts={status: leaderboard.count(status) for status in STATUSES},
        tables=tables,
        offers=offers,
        charts=views,
        figures=figures,
        claims=[_view_claim(judged, above) for judged in claims],
        custom_models=[custom_model.describe() for custom_model in suite.custom_models],
        comparison=COMPARISON,
        comparisons=write_comparisons(leaderboard),
        notes=find_notes(leaderboard),
        legend=explain(leaderboard),
        footnotes=suite.footnotes,
        links=find_links(above, grid) if above else [],
        all_parcels=list(contents),
    )
    empty = make(parcels=dict.fromkeys(contents, ""))
    return make(parcels=pack_within(MOST_BYTES - len(empty.encode()), contents))


def _render(
    parcels: Mapping[str, str],
    all_parcels: Sequence[str],
    charts: Sequence[object],
    live: LiveTable | None,
    is_served: bool,
    **shown: object,
) -> str:
    """Render the page with those of its parcels that there are, and say that others were left out."""
    has_charts = is_served or any(name.startswith(_CHART) for name in parcels)  # they may come while it is open
    has_runs = is_served or "runs" in parcels
    scripts = [name for name, is_needed in (("runs", has_runs), ("charts", has_charts)) if is_needed]
    kept = ("renew", "live") if live else FOLLOWED if is_served else ()
    return render(
        "live.html.j2" if live else "suite.html.j2",
        ("parcels", "tables", *scripts, *kept),
        charts_library() if has_charts else b"",
        asks_server=is_served,
        live=live,
        parcels=parcels,
        left_out=sorted(set(all_parcels) - set(parcels)),
        charts=charts,
        **shown,
    )


def _parcel_of(chart: Chart) -> str:
    return f"{_CHART}{chart.name}"


def _view_chart(chart: Chart, leaderboard: Leaderboard, contents: dict[str, bytes]) -> dict[str, object]:
    file = f"{leaderboard.profile_name}.{chart.name}.svg"
    offers = offer_chart(chart, leaderboard, contents)
    return {**vars(chart), "parcel": _parcel_of(chart), "file": file, "offers": offers}


def _view_claim(judged: JudgedClaim, above: str) -> dict[str, str]:
    page = f"{above}/claims/{judged.paper.name}.html#{judged.scale}-{judged.claim.name}" if above else ""
    return {
        "verdict": judged.verdict,
        "statement": judged.claim.statement,
        "section": judged.claim.section,
        "effect": write_effect(judged),
        "paper": write_papers_effect(judged),
        "href": page,
    }
