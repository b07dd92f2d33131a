"""Accuracy on the whole test split."""

import time
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from imagesets.loader import ImageLoader
from suite.base.errors import DataError
from suite.store.predictions import Predictions
from suite.training.accelerator import wait_for
from suite.training.distributed import Ranks, watch_for_lost_peers

_BATCH = 250


@dataclass(frozen=True)
class Accuracy:
    """Mean over the test split; accuracies in percent, cross-entropy in nats."""

    top1_percent: float
    top5_percent: float
    loss: float
    num_images: int
    predictions: Predictions = field(compare=False)
    images_per_s: float = 0.0  # of the forward passes alone, on one device, in batches of 250, without the first


@watch_for_lost_peers()  # in ZeRO stage 3 the model itself gathers its weights from all ranks
@torch.no_grad()
def evaluate(model: nn.Module, images: ImageLoader, ranks: Ranks, precision: str) -> Accuracy:
    """Evaluate, sharing the test batches among the ranks; every rank returns the same numbers.

    Args:
        model: the network, on this rank's device; its mode is restored.
        precision: "bf16" for autocast, or "fp32".

    Raises:
        DataError: no test image could be decoded.
    """
    was_training = model.training
    model.eval()
    totals = torch.zeros(6, dtype=torch.float64, device=ranks.device)
    predicted = torch.zeros(images.num_test, dtype=torch.int32, device=ranks.device)  # 1 + class
    timed: list[tuple[int, float]] = []  # images and seconds of each batch
    batches = images.test_batches(_BATCH, ranks.rank, ranks.num_ranks, ranks.device)
    for number, (batch, labels) in enumerate(batches):
        wait_for(ranks.device)
        started = time.perf_counter()
        with torch.autocast(ranks.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = model(batch)
        wait_for(ranks.device)
        timed.append((len(batch), time.perf_counter() - started))
        logits, counted = logits.float(), labels >= 0
        first = (ranks.rank + number * ranks.num_ranks) * _BATCH  # past the end, what only fills a batch
        best = logits.topk(min(5, logits.shape[1]), dim=1).indices
        predicted[first : first + _BATCH] = torch.where(counted, 1 + best[:, 0], 0).int()
        logits, labels = logits[counted], labels[counted]
        hits = best[counted] == labels[:, None]
        loss = F.cross_entropy(logits, labels, reduction="sum")
        totals[:4] += torch.stack([hits[:, 0].sum(), hits.sum(), loss, counted.sum()]).double()
    timed = timed[1:] or timed  # the first one also loads kernels, and chooses among them
    totals[4:] = torch.tensor(timed, dtype=torch.float64).sum(0)
    model.train(was_training)
    *sums, num_images, num_passed, forward_s = ranks.sum(totals).tolist()
    if not num_images:
        raise DataError("no test image can be decoded; expected all of them, or with --skip-corrupt most")
    top1, top5, loss_mean = (total / num_images for total in sums)
    classes = (ranks.sum(predicted) - 1).cpu().numpy().astype(np.int16)
    predictions = Predictions(classes, images.test_labels.astype(np.int16))
    images_per_s = num_passed / max(forward_s, 1e-9)
    return Accuracy(100 * top1, 100 * top5, loss_mean, int(num_images), predictions, images_per_s)
