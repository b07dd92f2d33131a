"""CMHSA: its recipes, a file a suite, its claims and its printed tables."""

from pathlib import Path

from suite.spec.suite import Paper

PAPER = Paper(
    name="cmhsa",
    title="CMHSA (Li et al., Can Vision Transformers Perform Convolution?)",
    appeared="2021-11",
    citation=Path(__file__).with_name("citation.bib").read_text(encoding="utf-8").strip(),
)
