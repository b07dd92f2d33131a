"""How the linear weights of a narrow model start: one rule for the small profiles of all papers.

A layer of width D passes on sqrt(D) times the deviation of its weights. PyTorch's own initialization has a deviation of
1 / sqrt(3 D), and so passes on as much at any width; a truncated normal of 0.02 does not. At a small profile's width it
keeps its ratio to 1 / sqrt(D), so that any two initializations stand to each other as at the paper's width.
"""

import math

PAPERS_STD = 0.02  # of DeiT, ConViT, CMHSA and structured initialization's truncated normal


def weight_scale(width: int, paper_width: int) -> float:
    """Factor on the paper's deviation at a narrower width: sqrt(paper_width / width)."""
    return round(math.sqrt(paper_width / width), 4)


def weight_std(width: int, paper_width: int) -> float:
    """Deviation of a truncated normal at a narrower width."""
    return round(PAPERS_STD * weight_scale(width, paper_width), 6)
