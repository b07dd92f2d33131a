"""ConViT: its recipes, a file a suite, its claims and its printed tables."""

from suite.spec.suite import Paper

PAPER = Paper(
    name="convit",
    title="ConViT (arXiv:2103.10697)",
    appeared="2021-03",
    citation="""
@inproceedings{dascoli2021convit,
  title={ConViT: Improving Vision Transformers with Soft Convolutional Inductive Biases},
  author={d'Ascoli, Stéphane and Touvron, Hugo and Leavitt, Matthew L. and Morcos, Ari S. and Biroli, Giulio
          and Sagun, Levent},
  booktitle={International Conference on Machine Learning},
  year={2021},
  eprint={2103.10697}
}
""".strip(),
)
