"""The judged claims of one paper -> its page: each verdict and why, with links to the cells."""

from collections import Counter
from collections.abc import Iterable, Sequence

from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.pictures.plots import plot_on_one_axis
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.report.tables import anchor
from leaderboards.text.claims import HEADINGS, LEGEND, format_claim
from leaderboards.text.notation import NOTHING
from suite.papers import get_suite
from suite.spec.claims import PaperClaims


def render_claims_html(paper: PaperClaims, claims: Sequence[JudgedClaim], grid: str = "") -> str:
    """Render the page of one paper's claims, at every scale that they were judged at.

    Args:
        paper, claims: the paper, and its judged claims.
        grid: the address of the page of the grid at work; "": a file.
    """
    scales = {judged.scale: [one for one in claims if one.scale == judged.scale] for judged in claims}
    return render(
        "claims.html.j2",
        ("tables", *(FOLLOWED if grid else ())),
        title=f"What {paper.title} claims, and what our runs say of it",
        paper=paper.title,
        headings=HEADINGS,
        scales=[
            {"name": name, "counts": count_verdicts(of_scale), "claims": [_view(judged) for judged in of_scale]}
            for name, of_scale in scales.items()
        ],
        not_judged=paper.not_judged,
        legend=LEGEND.replace("**", "").replace("*", "").split("\n\n"),
        links=find_links("..", grid),
    )


def address_of(judged: JudgedClaim) -> str:
    """The address of a claim within the folder of the claims' pages."""
    return f"{judged.paper.name}.html#{judged.scale}-{judged.claim.name}"


def count_verdicts(claims: Iterable[JudgedClaim]) -> dict[str, int]:
    return dict(Counter(judged.verdict for judged in claims).most_common())


def _view(judged: JudgedClaim) -> dict[str, object]:
    """The texts of a claim, with the numbers that its columns are sorted by."""
    estimate = judged.shown.estimate
    return {
        **format_claim(judged),
        "reasons": " ".join(judged.reasons),
        "anchor": f"{judged.scale}-{judged.claim.name}",
        "sort": {
            "effect": estimate.mean,
            "paper": judged.shown.paper,
            "p": judged.p,
            "adjusted": judged.adjusted,
            "n": judged.shown.num_seeds,
            "seeds": judged.seeds_needed,
        },
        "plot": plot_on_one_axis(estimate),
        "cells": _links(judged),
    }


def _links(judged: JudgedClaim) -> dict[str, str]:
    """Address -> text of the cells that the claim names; none for effects without a number, whose suite may have no
    page."""
    links = {}
    for effect, found in zip(judged.claim.effects, judged.effects, strict=True):
        for term in effect.terms if found.estimate.mean is not None else ():
            place, table = term.place, get_suite(term.suite).table(term.place.table).name
            row = " / ".join(filter(None, place.row))
            href = f"../{term.suite}/{judged.scale}.html#{anchor(table, place.row, place.column)}"
            links[href] = f"{row or NOTHING}, {place.column}"
    return links
