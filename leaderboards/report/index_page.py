"""All suites, and the claims' verdicts by paper and scale -> ``index.html``: a question a row, its answer first."""

import re
from collections.abc import Sequence

from leaderboards.judged_claims import JudgedClaim
from leaderboards.report.claims_page import address_of, count_verdicts
from leaderboards.report.effects import EffectView, view_effects
from leaderboards.report.rendering import FOLLOWED, find_links, render
from leaderboards.survey import IndexLine
from leaderboards.text.claims import answer, find_answer
from leaderboards.text.index import format_line
from leaderboards.text.notation import NOTHING
from suite.base.arguments import program
from suite.papers import list_claims, list_papers

FIRST = "sample_efficiency"  # the question that stands above all others


def render_index_html(lines: Sequence[IndexLine], claims: Sequence[JudgedClaim], grid: str = "") -> str:
    """Render the page of all suites.

    Args:
        lines: each a suite at one scale.
        claims: the claims of all papers, at every scale that has runs.
        grid: the address of the page of the grid at work, whose server keeps this page up to date; "": a file.
    """
    titles = [paper.title for paper in list_papers()]
    places = {title: number for number, title in enumerate(titles)}
    ordered = sorted(lines, key=lambda line: (line.suite.name != FIRST, places.get(line.suite.paper, len(titles))))
    begun: dict[str, list[IndexLine]] = {}
    for line in ordered:
        if line.cost or line.error:
            begun.setdefault(line.suite.name, []).append(line)
    shown = [max(of_suite, key=_weigh) for of_suite in begun.values()]
    effects = view_effects((line.suite.headline.text, line.ours) for line in shown)
    others = ([line for line in begun[one.suite.name] if line is not one] for one in shown)
    verdicts = [
        (paper, name, count_verdicts(judged for judged in claims if judged.paper is paper and judged.scale == name))
        for paper in list_claims()
        for name in dict.fromkeys(judged.scale for judged in claims if judged.paper is paper)
    ]
    return render(
        "index.html.j2",
        ("tables", *(FOLLOWED if grid else ())),
        title="What does a convolutional prior do for attention?",
        begun=[_view(*of_suite, claims) for of_suite in zip(shown, effects, others, strict=True)],
        idle=[line for line in ordered if not line.cost and not line.error],
        verdicts=verdicts,
        verdict_names=list(dict.fromkeys(name for _, _, counts in verdicts for name in counts)),
        grid_command=program("grid", "launchers/grid.py"),
        links=find_links(".", grid),
    )


def _weigh(line: IndexLine) -> tuple[bool, int]:
    """The paper's scale outweighs others, and many seeds outweigh few."""
    seeds = len(line.ours.estimate.values) if line.ours else 0
    return seeds > 0 and line.profile_name == "paper", seeds


def _view(
    line: IndexLine, effect: EffectView, others: Sequence[IndexLine], claims: Sequence[JudgedClaim]
) -> dict[str, object]:
    """A suite at one scale: its page, the claim that answers its question, its paper, and its boards at ``others``."""
    suite, board = line.suite, line.leaderboard
    judged = find_answer(suite, [judged for judged in claims if judged.scale == line.profile_name])
    costs = format_line(line)
    to_go = f", {costs['to_go']} to go" * (costs["to_go"] != NOTHING)
    arxiv = re.search(r"arXiv:(\d+\.\d+)", suite.paper)
    return {
        "suite": suite,
        "address": f"https://arxiv.org/abs/{arxiv[1]}" if arxiv else "",
        "board": _address(line),
        "others": [(other, format_line(other)["ours"], _address(other)) for other in others],
        "judged": judged,
        "claim": f"claims/{address_of(judged)}" if judged else "",
        "scale": line.profile_name,
        "answer": answer(judged) if judged else "",
        "effect": effect,
        "cells": f"{board.count('done')} of {board.num_cells} cells, {costs['spent']}{to_go}" if board else "",
        "error": line.error,
    }


def _address(line: IndexLine) -> str:
    return f"{line.suite.name}/{line.profile_name}.html" if line.cost else ""
