"""Cordonnier et al.: its recipes, a file a suite, its claims and its printed tables."""

from suite.spec.suite import Paper

PAPER = Paper(
    name="cordonnier",
    title="Cordonnier et al. (arXiv:1911.03584)",
    appeared="2019-11",
    citation="""
@inproceedings{cordonnier2020relationship,
  title={On the Relationship between Self-Attention and Convolutional Layers},
  author={Cordonnier, Jean-Baptiste and Loukas, Andreas and Jaggi, Martin},
  booktitle={International Conference on Learning Representations},
  year={2020},
  eprint={1911.03584}
}
""".strip(),
    coverage_note="Figures bear the numbers of the slides and of the published paper, of which the slides show a part. "
    "In brackets: what the arXiv text calls them.",
)
