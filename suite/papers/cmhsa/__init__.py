"""CMHSA: its recipes, a file a suite, its claims and its printed tables."""

from suite.spec.suite import Paper

PAPER = Paper(
    name="cmhsa",
    title="CMHSA (Li et al., Can Vision Transformers Perform Convolution?)",
    appeared="2021-11",
    citation="""
@article{li2021can,
  title={Can Vision Transformers Perform Convolution?},
  author={Li, Shanda and Chen, Xiangning and He, Di and Hsieh, Cho-Jui},
  journal={arXiv preprint arXiv:2111.01353},
  year={2021}
}
""".strip(),
)
