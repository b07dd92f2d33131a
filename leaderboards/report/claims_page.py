"""The judged claims of one paper -> its page: each verdict and why, with links to the cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.pictures.plots import Marks, Plot, scale
from leaderboards.report.rendering import FOLLOWED, Link, find_links, render
from leaderboards.report.tables import anchor_of
from leaderboards.text.claims import (
    LEGEND,
    write_effect,
    write_num_seeds,
    write_p_value,
    write_papers_effect,
    write_seeds_needed,
)
from leaderboards.text.notation import NOTHING
from suite.papers import get_suite
from suite.spec.claims import PaperClaims, Term


@dataclass(frozen=True)
class ClaimView:
    anchor: str
    statement: str
    section: str
    verdict: str
    effect: str
    paper: str
    p: str
    n: str
    seeds: str
    sort: dict[str, float | None]  # by column
    plot: Plot | None
    cells: tuple[Link, ...]


@dataclass(frozen=True)
class ScaleView:
    name: str
    counts: dict[str, int]  # by verdict
    claims: tuple[ClaimView, ...]


def render_claims_html(paper: PaperClaims, claims: Sequence[JudgedClaim], grid: str = "") -> str:
    """Make the page of one paper's claims, at every scale that they were judged at; ``grid`` as of the index."""
    scales = dict.fromkeys(judged.scale for judged in claims)
    return render(
        "claims.html.j2",
        ("parcels", "tables", *(FOLLOWED if grid else ())),
        asks_server=bool(grid),
        title=f"What {paper.title} claims, and what our runs say of it",
        paper=paper.title,
        scales=[_view_scale(scale, [judged for judged in claims if judged.scale == scale]) for scale in scales],
        not_judged=paper.not_judged,
        legend=LEGEND.replace("**", "").replace("*", "").split("\n\n"),
        links=find_links("..", grid),
        parcels={},
    )


def count_verdicts(claims: Iterable[JudgedClaim]) -> dict[str, int]:
    """The number of claims by verdict, the most frequent first."""
    return dict(Counter(judged.verdict for judged in claims).most_common())


def _view_scale(name: str, claims: Sequence[JudgedClaim]) -> ScaleView:
    return ScaleView(name, count_verdicts(claims), tuple(map(_view, claims)))


def _view(judged: JudgedClaim) -> ClaimView:
    claim, estimate = judged.claim, judged.shown.estimate
    return ClaimView(
        anchor=f"{judged.scale}-{claim.name}",
        statement=claim.statement,
        section=claim.section,
        verdict=judged.verdict,
        effect=write_effect(judged),
        paper=write_papers_effect(judged),
        p=write_p_value(judged),
        n=write_num_seeds(judged),
        seeds=write_seeds_needed(judged),
        sort={
            "effect": estimate.mean,
            "paper": judged.shown.paper,
            "p": judged.p_value,
            "n": min(judged.num_seeds),
            "seeds": judged.seeds_needed,
        },
        plot=scale({(): Marks(estimate.mean, estimate.interval, judged.shown.paper, 0.0)}).get(()),
        cells=tuple(_links(judged)),
    )


def _links(judged: JudgedClaim) -> Iterable[Link]:
    """To each cell that the claim speaks of, once; those without a number may be of a suite that has no page yet."""
    known = [
        effect
        for effect, found in zip(judged.claim.effects, judged.effects, strict=True)
        if found.estimate.mean is not None
    ]
    terms = {_address(term): term for effect in known for term in effect.terms}
    for (_, anchor), term in terms.items():
        row = " / ".join(filter(None, term.place.row))
        yield Link(f"{row or NOTHING}, {term.place.column}", f"../{term.suite}/{judged.scale}.html#{anchor}")


def _address(term: Term) -> tuple[str, str]:
    table = get_suite(term.suite).table(term.place.table).name
    return term.suite, anchor_of(term.place, table)
