"""A leaderboard, the figures that were drawn of it and the claims on it -> its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leaderboards.boards.board import ENTRY, Leaderboard
from leaderboards.boards.cells import STATUSES
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import address_of
from leaderboards.report.compressed import as_json, compress, keep_within
from leaderboards.report.downloads import list_table_files, view_figure
from leaderboards.report.effects import view_boards_effects
from leaderboards.report.pictures.learning_curves import NAME, draw_learning_curves
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.report.runs_behind import COLUMNS, RunReader, RunsOfCell
from leaderboards.report.tables import view_table
from leaderboards.text.claims import answer, find_answer, format_claim
from leaderboards.text.custom_models import COMPARISON, write_comparisons
from leaderboards.text.legend import explain
from leaderboards.text.notation import format_power, make_headline, scale_title
from leaderboards.text.notes import find_notes
from suite.store.run_status import name_state

MOST_BYTES = 1_450_000  # of a page, unless its tables and notes alone have more
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
    judged = find_answer(suite, claims)
    reader = RunReader(leaderboard)
    tables = [view_table(board, reader, runs) for board in leaderboard.tables.values()]
    boards = zip(leaderboard.tables.values(), tables, strict=True)
    downloads = {table.name: list_table_files(board, table) for board, table in boards}
    figures = [
        view_figure(
            leaderboard,
            figure.name,
            figure.item,
            f"{type(figure).__name__.removesuffix('Figure').lower()} figure",
            pictures[figure.name],
        )
        for figure in suite.figures
        if pictures.get(figure.name)
    ]
    not_drawn = [figure.item for figure in suite.figures if not pictures.get(figure.name)]
    if curves := draw_learning_curves(leaderboard):
        figures.append(view_figure(leaderboard, NAME, "Learning curves", "accuracies and losses over epochs", curves))
    files = [file for of in (*downloads.values(), *(figure.downloads for figure in figures)) for file in of]
    contents = {"runs": as_json({"columns": COLUMNS, "cells": [vars(of_cell) for of_cell in runs]})}
    contents |= {file.file: file.content for file in files}
    texts = {figure.file: figure.source for figure in figures}  # first, as paper and browsers without scripts have them
    texts |= {name: compress(content) for name, content in contents.items()}
    is_served = live is not None or bool(grid)
    shown: dict[str, object] = {
        "live": live,
        "title": f"{suite.name}, {leaderboard.profile_name}: {suite.question}",
        "suite": suite,
        "profile": leaderboard.profile,
        "headline": f"{make_headline(leaderboard).told}.",
        "answer": judged and answer(judged),
        "statement": judged and judged.claim.statement,
        "effects": view_boards_effects(leaderboard),
        "power": format_power(leaderboard),
        "scale": scale_title(leaderboard),
        "counts": {name_state(status): n for status in STATUSES if (n := leaderboard.count(status))},
        "tables": tables,
        "downloads": downloads,
        "not_drawn": "; ".join(not_drawn),
        "claims": [
            {**format_claim(judged), "href": above and f"{above}/claims/{address_of(judged)}"} for judged in claims
        ],
        "comparison": COMPARISON,
        "comparisons": write_comparisons(leaderboard),
        "entry_columns": ENTRY,
        "entries": leaderboard.entries,
        "notes": find_notes(leaderboard),
        "legend": explain(leaderboard),
        "links": find_links(above, grid) if above else {},
    }

    def render_with(kept: Mapping[str, str]) -> str:
        """Render the page with the contents that fit, and name the others."""
        scripts = ("renew", "live") if live else FOLLOWED if is_served else ()
        return render(
            "live.html.j2" if live else "suite.html.j2",
            ("embedded", "tables", *(("runs",) if is_served or "runs" in kept else ()), *scripts),
            figures=[replace(figure, source=kept.get(figure.file, "")) for figure in figures],
            embedded={name: kept[name] for name in contents if name in kept},
            left_out=sorted(set(texts) - set(kept)),
            **shown,
        )

    empty = render_with(dict.fromkeys(texts, ""))
    return render_with(keep_within(MOST_BYTES - len(empty.encode()), texts))
