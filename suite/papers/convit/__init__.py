"""ConViT: its recipes, a file a suite, its claims and its printed tables."""

from pathlib import Path

from suite.spec.suite import Paper

PAPER = Paper(
    name="convit",
    title="ConViT (arXiv:2103.10697)",
    appeared="2021-03",
    citation=Path(__file__).with_name("citation.bib").read_text(encoding="utf-8").strip(),
)
