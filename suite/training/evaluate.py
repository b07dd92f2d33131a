"""Accuracy on the whole test split."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from imagesets.memory import MemoryImages
from suite.training.distributed import Ranks

_BATCH = 250


@dataclass(frozen=True)
class Accuracy:
    """Mean over the test split; accuracies in percent, cross-entropy in nats."""

    top1_percent: float
    top5_percent: float
    loss: float


@torch.no_grad()
def evaluate(model: nn.Module, images: MemoryImages, ranks: Ranks, precision: str) -> Accuracy:
    """Evaluate, sharing the test batches among the ranks; every rank returns the same numbers."""
    was_training = model.training
    model.eval()
    totals = torch.zeros(3, dtype=torch.float64, device=ranks.device)
    for first in range(0, images.num_test, ranks.num_ranks * _BATCH):
        # every rank runs as many forward passes as the others, since ZeRO-3 gathers weights in them: a rank past the
        # end looks at one image that does not count
        start = first + ranks.rank * _BATCH
        counts = start < images.num_test
        batch, labels = images.test_batch(start, start + _BATCH) if counts else images.test_batch(0, 1)
        batch, labels = batch.to(ranks.device), labels.to(ranks.device)
        with torch.autocast(ranks.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = model(batch)
        logits = logits.float()
        hits = logits.topk(min(5, logits.shape[1]), dim=1).indices == labels[:, None]
        loss = F.cross_entropy(logits, labels, reduction="sum")
        if counts:
            totals += torch.stack([hits[:, 0].sum(), hits.sum(), loss]).double()
    model.train(was_training)
    top1, top5, loss = (ranks.sum(totals) / images.num_test).tolist()
    return Accuracy(100 * top1, 100 * top5, loss)
