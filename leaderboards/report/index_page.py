"""All suites, and the claims' verdicts by paper and scale -> ``index.html``."""

from collections.abc import Sequence

from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import count_verdicts
from leaderboards.report.pictures.plots import plot_effect
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.survey import IndexLine
from leaderboards.text.index import LEGEND, format_line
from suite.papers import list_claims


def render_index_html(lines: Sequence[IndexLine], claims: Sequence[JudgedClaim], grid: str = "") -> str:
    """Render the page of all suites.

    Args:
        lines: each a suite at one scale.
        claims: the claims of all papers, at every scale that has runs.
        grid: the address of the page of the grid at work, whose server keeps this page up to date; "": a file.
    """
    begun = [_view(line) for line in lines if line.cost or line.error]
    verdicts = [
        (paper, name, count_verdicts(judged for judged in claims if judged.paper is paper and judged.scale == name))
        for paper in list_claims()
        for name in dict.fromkeys(judged.scale for judged in claims if judged.paper is paper)
    ]
    return render(
        "index.html.j2",
        ("embedded", "tables", *(FOLLOWED if grid else ())),
        asks_server=bool(grid),
        title="Leaderboards of all suites",
        begun=begun,
        idle=[_view(line) for line in lines if not line.cost and not line.error],
        verdicts=[
            {"paper": paper.title, "href": f"claims/{paper.name}.html#{name}", "scale": name, "counts": counts}
            for paper, name, counts in verdicts
        ],
        verdict_names=list(dict.fromkeys(name for _, _, counts in verdicts for name in counts)),
        legend=LEGEND.replace("`", ""),
        links=find_links(".", grid),
    )


def _view(line: IndexLine) -> dict[str, object]:
    """A suite at one scale; ``href`` is "" where it has no page."""
    suite, cell, board = line.suite, line.headline, line.leaderboard
    return {
        **format_line(line),
        "suite": suite.name,
        "question": suite.question,
        "source": f"{suite.paper}, {suite.item}",
        "scale": line.profile_name,
        "href": f"{suite.name}/{line.profile_name}.html" if line.cost else "",
        "done": board.count("done") if board and line.cost else 0,
        "num_cells": board.num_cells if board else 0,
        "plot": plot_effect(cell.mean, cell.interval, cell.paper) if cell and line.cost and cell.is_usable else None,
        "error": line.error,
    }
