"""Structured initialization: its recipes, a file a suite, its claims and its printed tables."""

from suite.spec.suite import Paper

PAPER = Paper(
    name="structured_init",
    title="Structured initialization (arXiv:2404.01139)",
    appeared="2024-04",
    citation="""
@article{zheng2024structured,
  title={Structured Initialization for Attention in Vision Transformers},
  author={Zheng, Jianqiao and Li, Xueqian and Lucey, Simon},
  journal={arXiv preprint arXiv:2404.01139},
  year={2024}
}
""".strip(),
)
