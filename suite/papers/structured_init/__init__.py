"""Structured initialization: its recipes, a file a suite, its claims and its printed tables."""

from pathlib import Path

from suite.spec.suite import Paper

PAPER = Paper(
    name="structured_init",
    title="Structured initialization (arXiv:2404.01139)",
    appeared="2024-04",
    citation=Path(__file__).with_name("citation.bib").read_text(encoding="utf-8").strip(),
)
