"""Floating-point operations of a model, counted on the meta device: nothing is computed or allocated.

Models that are none of ours need not be able to live there, and count one image on the CPU.
"""

import contextlib
import warnings
from functools import lru_cache
from typing import Any

import timm
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from suite.cost.known_flops import Flops, find_flops, keep_flops
from suite.models.registry import build_model

_LINEAR = ("mm", "addmm", "convolution")  # the rest, batched products and fused attention, mixes tokens
_TIMM = "timm/"


def count_flops(model: str, *, num_classes: int, image_size: int, **options: Any) -> Flops:
    """Count for a model by name, once: the count is kept on disk, and of the suites' models shipped with the package.

    Args:
        model: a name of ``build_model``, or of a model of timm's after ``timm/``.
        options: options of ``build_model``, including the ``model_source`` of a custom model.
    """
    found = find_flops(model, num_classes=num_classes, image_size=image_size, **options)
    return found or _count_once(model, num_classes, image_size, tuple(sorted(options.items())))


@lru_cache  # also where it cannot be kept on disk
def _count_once(model: str, num_classes: int, image_size: int, options: tuple[tuple[str, Any], ...]) -> Flops:
    flops = count_anew(model, num_classes, image_size, dict(options))
    keep_flops(flops, model, num_classes=num_classes, image_size=image_size, **dict(options))
    return flops


def count_anew(model: str, num_classes: int, image_size: int, options: dict[str, Any]) -> Flops:
    """Count for a model, whether its count is known or not.

    Args:
        model: a name of ours, or a custom model's.
        image_size: height and width in pixels.
    """
    device = "meta" if options.get("model_source") is None else "cpu"
    with torch.random.fork_rng(devices=()), torch.device(device):
        if model.startswith(_TIMM):
            network = timm.create_model(model.removeprefix(_TIMM), num_classes=num_classes).eval()
        else:
            network = build_model(model, num_classes=num_classes, image_size=image_size, **options).eval()
        images = torch.zeros(1, 3, image_size, image_size)
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = _Whole()  # type: ignore[assignment]
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # torch's own encoder would be one operator that nobody counts
    try:
        with (
            warnings.catch_warnings(action="ignore"),  # of slow padding: nothing is computed
            sdpa_kernel(SDPBackend.MATH),  # so would attention, on a CPU,
            torch.backends.mkldnn.flags(enabled=False),  # and torch's LSTM
            counter,
            torch.no_grad(),
        ):
            network(images)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    by_operator = {str(operator): count for operator, count in counter.get_flop_counts()["Global"].items()}
    linear = sum(count for operator, count in by_operator.items() if operator.split(".")[-1] in _LINEAR)
    return Flops(total=sum(by_operator.values()), linear=linear)


class _Whole(contextlib.nullcontext[None]):
    """In place of the counter's own look at single modules, which fails where one is given a parameter."""

    parents = frozenset({"Global"})
