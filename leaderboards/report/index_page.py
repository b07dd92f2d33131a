"""All suites, and the claims' verdicts by paper and scale -> ``index.html``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboards.boards.cells import Cell
from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import count_verdicts
from leaderboards.report.pictures.plots import Marks, Plot, scale
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.survey import IndexLine
from leaderboards.text.index import LEGEND, format_to_go
from leaderboards.text.notation import NOTHING, format_difference, format_signed, paper_decimals
from suite.cost.costs import write_hours
from suite.papers import list_claims
from suite.spec.claims import PaperClaims


@dataclass(frozen=True)
class SuiteView:
    """A suite at one scale; ``href`` is "" where it has no page."""

    suite: str
    question: str
    source: str
    scale: str
    href: str
    done: int
    num_cells: int
    headline: str
    ours: str
    paper: str
    plot: Plot | None
    spent: str
    to_go: str
    error: str


def render_index_html(lines: Sequence[IndexLine], claims: Sequence[JudgedClaim], grid: str = "") -> str:
    """Make the page of all suites.

    Args:
        lines: a suite at a scale each.
        claims: of all papers, at every scale that has runs.
        grid: the address of the grid's page that serves this one, and keeps it up to date; "": a file.
    """
    begun = [_view(line) for line in lines if line.cost or line.error]
    verdicts = [
        (paper, name, count_verdicts(judged for judged in claims if judged.paper is paper and judged.scale == name))
        for paper in list_claims()
        for name in dict.fromkeys(judged.scale for judged in claims if judged.paper is paper)
    ]
    return render(
        "index.html.j2",
        ("parcels", "tables", *(FOLLOWED if grid else ())),
        asks_server=bool(grid),
        title="Leaderboards of all suites",
        begun=begun,
        idle=[_view(line) for line in lines if not line.cost and not line.error],
        verdicts=[_view_verdicts(*of_paper) for of_paper in verdicts],
        verdict_names=list(dict.fromkeys(name for _, _, counts in verdicts for name in counts)),
        legend=LEGEND.replace("`", ""),
        links=find_links(".", grid),
        parcels={},
    )


def _view_verdicts(paper: PaperClaims, scale_name: str, counts: dict[str, int]) -> dict[str, object]:
    return {"paper": paper.title, "href": f"claims/{paper.name}.html#{scale_name}", "scale": scale_name,
            "counts": counts}  # fmt: skip


def _view(line: IndexLine) -> SuiteView:
    suite, cell, cost = line.suite, line.headline, line.cost or line.planned
    known = line.leaderboard is not None and line.cost is not None
    return SuiteView(
        suite=suite.name,
        question=suite.question,
        source=f"{suite.paper}, {suite.item}",
        scale=line.profile_name,
        href=f"{suite.name}/{line.profile_name}.html" if known else "",
        done=line.leaderboard.count("done") if line.leaderboard and line.cost else 0,
        num_cells=line.leaderboard.num_cells if line.leaderboard else 0,
        headline=suite.headline.text,
        ours=format_difference(cell) if cell and known else NOTHING,
        paper=format_signed(cell.paper, paper_decimals(cell)) if cell else NOTHING,
        plot=_plot(cell) if cell and known else None,
        spent=f"{write_hours(cost.hours_spent)} {cost.unit}" if cost and known else NOTHING,
        to_go=f"{format_to_go(cost)} {cost.unit}" if cost else NOTHING,
        error=line.error,
    )


def _plot(cell: Cell) -> Plot | None:
    if not cell.is_usable:
        return None
    return scale({(): Marks(cell.mean, cell.interval, cell.paper, 0.0)}).get(())
