"""Floating-point operations of a model, counted on the meta device: nothing is computed or allocated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from suite.models.build import build_model

_LINEAR = ("mm", "addmm", "convolution")  # the rest, batched products and fused attention, mixes tokens


@dataclass(frozen=True)
class Flops:
    """Of one image's forward pass, 2 per multiply-add, matrix products and convolutions only.

    ``linear`` leaves out attention maps and their products with the values: the convention that fits the papers.
    """

    total: int
    linear: int


def count_flops(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops:
    """Count for a model by name; ``options`` as for ``build_model``."""
    return _count(model, num_classes, image_size, tuple(sorted(options.items())))


@lru_cache
def _count(model: str, num_classes: int, image_size: int, options: tuple[tuple[str, Any], ...]) -> Flops:
    with torch.device("meta"):
        network = build_model(model, num_classes=num_classes, image_size=image_size, **dict(options)).eval()
        images = torch.empty(1, 3, image_size, image_size)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(images)
    by_operator = {str(operator): count for operator, count in counter.get_flop_counts()["Global"].items()}
    linear = sum(count for operator, count in by_operator.items() if operator.split(".")[-1] in _LINEAR)
    return Flops(total=sum(by_operator.values()), linear=linear)
