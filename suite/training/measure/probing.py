"""Measures of attention while it is trained: lines of ``metrics.jsonl`` before the first step and each epoch's end.

The numbers behind ConViT's Figures 5, 6, 10, 13 and 14 and Cordonnier's Figure 3. They are logged for every model with
attention, since they change no result: a run that another suite has finished has them too.
"""

import torch
from torch import Tensor, nn

from imagesets.loader import ImageLoader
from suite.models.convit.probes import gating_values, gaussian_heads, nonlocality

_NUM_IMAGES = {"cpu": 128, "cuda": 1024}  # the paper averages over 1024
MAX_EPOCHS = 300  # the longest training of the paper's figures; of longer ones every second epoch, or third, ...
MIN_MOMENTS = 20  # of a short training at which its heads' places are logged: they cost no look at any image
_CHUNK = 32  # images whose maps of one layer are held at once

Lines = list[list[float]]
Places = list[list[list[float]]]


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
        return {
            name: [[round(value, 6) for value in value_H.tolist()] for value_H in layers.values()]
            for name, layers in found.items()
            if layers
        }


def locate_heads(model: nn.Module) -> dict[str, Places]:
    """Of quadratic encodings ``centers`` [layer][head] in patches, (row, column) of key - query, and ``precisions``
    [layer][head], the inverse covariance's entries (row row, row column, column column); {} without."""
    centers, precisions = [], []
    for centers_H2, precision_H22 in gaussian_heads(model).values():
        centers.append([[round(value, 3) for value in head] for head in centers_H2.tolist()])
        entries_H3 = precision_H22[:, (0, 0, 1), (0, 1, 1)]  # from near 0 to 1e5 and beyond: digits, not decimals
        precisions.append([[float(f"{value:.3g}") for value in head] for head in entries_H3.tolist()])
    return {"centers": centers, "precisions": precisions} if centers else {}


def mean(lines: Lines | None) -> float | None:
    """Over layers and heads; layers whose heads were all pruned count as none."""
    values = [value for line in lines or [] for value in line]
    return sum(values) / len(values) if values else None
