"""Switching parts of a trained model off for an evaluation (arXiv:2103.10697, SM F, Tables 5 and 6)."""

import contextlib
from collections.abc import Iterator

from torch import Tensor, nn

from suite.base.errors import SpecError, check_name
from suite.models.convit.gpsa import GatedPositionalSelfAttention

_MASKS = {  # what a position embedding is filled with, or a gate: sigmoid is 1 = position only, 0 = content only
    "position_embedding": 0.0,
    "content": float("inf"),
    "position": float("-inf"),
}


@contextlib.contextmanager
def masked(model: nn.Module, mask: str, num_layers: int = 0) -> Iterator[None]:
    """Inside the ``with`` a part of the model is switched off.

    Args:
        mask: "position_embedding" of any model that has one (Table 5), or "content" or "position", without which the
            first GPSA layers attend (Table 6).
        num_layers: number of these layers.

    Raises:
        SpecError: an unknown mask, no position embedding, or fewer GPSA layers than that.
    """
    check_name("mask", mask, _MASKS)
    if mask == "position_embedding":
        position = getattr(model, "pos_embed", None)
        if not isinstance(position, Tensor):
            raise SpecError(f"{type(model).__name__} has no pos_embed to mask")
        parameters: list[Tensor] = [position]
    else:
        layers = [module for module in model.modules() if isinstance(module, GatedPositionalSelfAttention)]
        if not 0 < num_layers <= len(layers):
            raise SpecError(f"num_layers is {num_layers}, expected 1 to {len(layers)}, the model's GPSA layers")
        parameters = [layer.gating_param for layer in layers[:num_layers]]
    originals = [parameter.detach().clone() for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.data.fill_(_MASKS[mask])
        yield
    finally:
        for parameter, original in zip(parameters, originals, strict=True):
            parameter.data.copy_(original)
