"""Switching parts of a trained model off for an evaluation (arXiv:2103.10697, SM F, Tables 5 and 6).

with mask_attention(model, "position", num_layers=5):
    evaluate(model, ...)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.convit.gpsa import GatedPositionalSelfAttention

_GATE_LOGITS = {"content": float("inf"), "position": float("-inf")}  # sigmoid: 1 = position only, 0 = content only


@contextlib.contextmanager
def mask_position_embedding(model: nn.Module) -> Iterator[None]:
    """Table 5: the absolute position embedding is zero inside the ``with``. For any model with a ``pos_embed``."""
    position = getattr(model, "pos_embed", None)
    if not isinstance(position, Tensor):
        raise SpecError(f"{type(model).__name__} has no pos_embed to mask")
    with _replaced([(position, torch.zeros_like(position))]):
        yield


@contextlib.contextmanager
def mask_attention(model: nn.Module, part: Literal["content", "position"], num_layers: int) -> Iterator[None]:
    """Table 6: the first ``num_layers`` GPSA layers attend without content, or without position, inside the ``with``.

    Raises:
        SpecError: an unknown part, or fewer GPSA layers than that.
    """
    check_name("part of the attention", part, _GATE_LOGITS)
    layers = [module for module in model.modules() if isinstance(module, GatedPositionalSelfAttention)]
    if not 0 < num_layers <= len(layers):
        raise SpecError(f"num_layers is {num_layers}, expected 1 to {len(layers)}, the model's GPSA layers")
    gates: list[Tensor] = [layer.gating_param for layer in layers[:num_layers]]
    with _replaced([(gate, torch.full_like(gate, _GATE_LOGITS[part])) for gate in gates]):
        yield


@contextlib.contextmanager
def _replaced(pairs: list[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Parameters hold other values inside the ``with``, and their own again after it."""
    originals = [parameter.detach().clone() for parameter, _ in pairs]
    try:
        for parameter, value in pairs:
            parameter.data.copy_(value)
        yield
    finally:
        for (parameter, _), original in zip(pairs, originals, strict=True):
            parameter.data.copy_(original)
