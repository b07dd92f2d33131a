"""Removing the degenerate heads of a generalized quadratic network (arXiv:1911.03584, Appendix A.1).

Shape legend: D width, H heads, K heads kept.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from suite.errors import SpecError
from suite.models.cordonnier import SelfAttentionNetwork
from suite.models.cordonnier_attention import GeneralizedQuadraticAttention


def prune_heads(
    model: SelfAttentionNetwork, max_condition_number: float = 1e5, min_eigenvalue: float = 1e-5
) -> SelfAttentionNetwork:
    """A new, smaller network without the heads that look at a thin stripe or at everything alike.

    Removed are heads whose inverse covariance S S^T has a largest eigenvalue below ``min_eigenvalue`` or a condition
    number above ``max_condition_number``: 1e-5 and 1e5 in the paper, 1e-5 and 1000 in the authors' code. Everything
    else is copied, biases included, so the result computes what the model does without those heads' outputs. A layer
    may lose all its heads. ``result.options["heads_per_layer"]`` builds it again by name.

    Raises:
        SpecError: the network's encoding is not "quadratic_generalized".
    """
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    counts = []
    for name, layer in model.named_modules():
        if isinstance(layer, GeneralizedQuadraticAttention):
            keep_H = ~degenerate_heads(layer, max_condition_number, min_eigenvalue)
            counts.append(str(int(keep_H.sum())))
            for key in ("spreads", "centers_H2"):
                state[f"{name}.{key}"] = state[f"{name}.{key}"][keep_H]
            weight_DHD = layer.out.weight.detach().unflatten(1, (layer.num_heads, -1))
            state[f"{name}.out.weight"] = weight_DHD[:, keep_H].flatten(1).clone()
    if not counts:
        raise SpecError(f"encoding {model.options['encoding']!r} has no covariances; expected 'quadratic_generalized'")
    pruned = type(model)(**{**model.options, "heads_per_layer": ",".join(counts)})
    pruned.to(model.head.weight).load_state_dict(state)
    return pruned.train(model.training)


def count_pruned_heads(model: nn.Module) -> tuple[int, ...]:
    """Heads that each layer has lost, first layer first; () for a network that was not pruned."""
    options = getattr(model, "options", {})
    left = options.get("heads_per_layer")
    return tuple(options["num_heads"] - int(heads) for heads in left.split(",")) if left else ()


@torch.no_grad()
def degenerate_heads(
    layer: GeneralizedQuadraticAttention, max_condition_number: float, min_eigenvalue: float
) -> Tensor:
    """Which heads to remove: (H,), boolean."""
    spreads_H22 = layer.spreads.double()  # a condition number of 1e5 is at the limit of single precision
    smallest_H, largest_H = torch.linalg.eigvalsh(spreads_H22 @ spreads_H22.mT).unbind(-1)
    condition_H = largest_H / smallest_H.clamp(min=0)  # rounding may leave a singular matrix below zero
    return (largest_H < min_eigenvalue) | (condition_H > max_condition_number)
