"""What attention does while it is trained: one line of ``metrics.jsonl`` before the first step and after each epoch.

The numbers behind ConViT's Figures 5, 6, 10, 13 and 14. They are logged for every model with attention, since they
change no result: a run that another suite has finished has them too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from imagesets.loader import ImageLoader
from suite.models.probes import attention_layers, gating_values, nonlocality

_NUM_IMAGES = {"cpu": 128, "cuda": 1024}  # the paper averages over 1024
MAX_EPOCHS = 300  # the longest training of the paper's figures; of longer ones every second epoch, or third, ...
_CHUNK = 32  # images whose maps of one layer are held at once

Lines = list[list[float]]


class AttentionProbe:
    """Measures a model on test images of all classes, always the same."""

    def __init__(self, images: ImageLoader, device: torch.device) -> None:
        self._device = device
        self._batch = images.spread_batch(_NUM_IMAGES[device.type]).images

    def measure(self, model: nn.Module) -> dict[str, Lines]:
        """``nonlocality`` [layer][head] in patches and, where there are gates, ``gates`` [layer][head]."""
        chunks = self._batch.split(_CHUNK)
        total: dict[str, Tensor] = {}
        for chunk in chunks:
            for name, value_H in nonlocality(model, chunk.to(self._device)).items():
                total[name] = total.get(name, 0) + value_H.double() * len(chunk) / len(self._batch)
        found = {"nonlocality": total, "gates": gating_values(model)}
        return {name: _as_lists(layers) for name, layers in found.items() if layers}


def can_be_probed(model: nn.Module, zero_stage: int) -> bool:
    """Whether there is attention to look at. ZeRO stage 3 cuts weights in pieces, which one rank alone cannot use."""
    return zero_stage < 3 and bool(attention_layers(model))


def mean(lines: Lines | None) -> float | None:
    """Over layers and heads; layers whose heads were all pruned count as none."""
    values = [value for line in lines or [] for value in line]
    return sum(values) / len(values) if values else None


def _as_lists(layers: dict[str, Tensor]) -> Lines:
    return [[round(value, 6) for value in value_H.tolist()] for value_H in layers.values()]
