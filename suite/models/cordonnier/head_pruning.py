"""Removing the degenerate heads of a generalized quadratic network (arXiv:1911.03584, Appendix A.1).

Shape legend: D width, H heads, K heads kept.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from suite.base.errors import SpecError
from suite.models.cordonnier.attention import GeneralizedQuadraticAttention
from suite.models.cordonnier.network import SelfAttentionNetwork


def prune_heads(
    model: SelfAttentionNetwork, max_condition_number: float = 1e5, min_eigenvalue: float = 1e-5
) -> SelfAttentionNetwork:
    """A new, smaller network without the heads that look at a thin stripe or at everything alike.

    Removed are heads whose inverse covariance S S^T has a largest eigenvalue below ``min_eigenvalue`` or a condition
    number above ``max_condition_number``: 1e-5 and 1e5 in the paper, 1e-5 and 1000 in the authors' code. Everything
    else is copied, biases included, so the result computes what the model does without those heads' outputs. A layer
    may lose all its heads. ``heads_per_layer`` of the result builds it again by name.

    Raises:
        SpecError: the network's encoding is not "quadratic_generalized".
    """
    pruned = copy.deepcopy(model)
    layers = [layer for layer in pruned.modules() if isinstance(layer, GeneralizedQuadraticAttention)]
    if not layers:
        raise SpecError(f"encoding {model.encoding!r} has no covariances; expected 'quadratic_generalized'")
    for layer in layers:
        _keep_heads(layer, ~degenerate_heads(layer, max_condition_number, min_eigenvalue))
    pruned.heads_per_layer = ",".join(str(layer.num_heads) for layer in layers)
    return pruned


def _keep_heads(layer: GeneralizedQuadraticAttention, keep_H: Tensor) -> None:
    """Take all other heads out of a layer."""
    weight_DHD = layer.out.weight.detach().unflatten(1, (layer.num_heads, layer.out.out_features))
    layer.num_heads = int(keep_H.sum())
    layer.spreads = nn.Parameter(layer.spreads.detach()[keep_H])
    layer.centers_H2 = nn.Parameter(layer.centers_H2.detach()[keep_H])
    layer.out.weight = nn.Parameter(weight_DHD[:, keep_H].flatten(1))
    layer.out.in_features = layer.out.weight.shape[1]


def pruned_options(model: nn.Module) -> dict[str, Any]:
    """Return the options that build a pruned network; {} for any other, whose own options do."""
    is_pruned = isinstance(model, SelfAttentionNetwork) and model.heads_per_layer
    return {"heads_per_layer": model.heads_per_layer} if is_pruned else {}


def count_pruned_heads(model: nn.Module) -> tuple[int, ...]:
    """Count the heads that each layer has lost, first layer first; () for a network that was not pruned."""
    if not isinstance(model, SelfAttentionNetwork) or not model.heads_per_layer:
        return ()
    return tuple(model.num_heads - int(heads) for heads in model.heads_per_layer.split(","))


@torch.no_grad()
def degenerate_heads(
    layer: GeneralizedQuadraticAttention, max_condition_number: float, min_eigenvalue: float
) -> Tensor:
    """Which heads to remove: (H,), boolean."""
    spreads_H22 = layer.spreads.double()  # a condition number of 1e5 is at the limit of single precision
    smallest_H, largest_H = torch.linalg.eigvalsh(spreads_H22 @ spreads_H22.mT).unbind(-1)
    condition_H = largest_H / smallest_H.clamp(min=0)  # rounding may leave a singular matrix below zero
    return (largest_H < min_eigenvalue) | (condition_H > max_condition_number)
