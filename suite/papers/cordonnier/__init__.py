"""Cordonnier et al.: its recipes, a file a suite, its claims and its printed tables."""

from pathlib import Path

from suite.spec.suite import Paper

PAPER = Paper(
    name="cordonnier",
    title="Cordonnier et al. (arXiv:1911.03584)",
    appeared="2019-11",
    citation=Path(__file__).with_name("citation.bib").read_text(encoding="utf-8").strip(),
    coverage_note="Figures bear the numbers of the slides and of the published paper, of which the slides show a part. "
    "In brackets: what the arXiv text calls them.",
)
