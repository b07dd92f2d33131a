"""Measures of where attention looks: maps, nonlocality, centers and gates, as functions of a model and a batch.

They work for every model here with attention, and for timm's VisionTransformer: an attention layer is a module with a
method ``attention_map`` (ours) or timm's ``Attention``. Nothing in the model is changed.

Shape legend: B batch, N tokens, L patches, H heads.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from timm.layers import Attention as TimmAttention
from torch import Tensor, nn

from suite.base.errors import SpecError
from suite.models.cordonnier.attention import GeneralizedQuadraticAttention, QuadraticAttention
from suite.models.layers import content_logits


def nonlocality(model: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Eq. 8 of arXiv:2103.10697 per layer and head: (H,), in patches, averaged over the batch.

        D_h = 1/L sum_ij A_h,ij |position_i - position_j|

    over patches i, j, of each layer's own attention on its own input; what is paid to a class token counts as no
    distance. Differs: the authors' logging code feeds the embedded patches to every layer.
    """

    def measure(map_BHNN: Tensor) -> Tensor:
        offset_LL2 = _offsets(token_grid(model, map_BHNN.shape[-1])).to(map_BHNN)
        patches_BHLL = between_patches(map_BHNN, len(offset_LL2))
        return (patches_BHLL * offset_LL2.norm(dim=-1)).sum(-1).mean((0, 2))

    answers: dict[str, Tensor] = probe(model, images, measure)
    return answers


def attention_centers(map_BHNN: Tensor, grid: tuple[int, int]) -> Tensor:
    """Where each head looks on average, relative to the query: (H, 2) as (rows, columns), key - query, in patches.

    The mean of the offset under all the attention paid to patches (arXiv:1911.03584, Figs. 3 to 6). Near a border
    a head cannot look outside, which draws its center inward.
    """
    patches_BHLL = between_patches(map_BHNN, grid[0] * grid[1])
    total_H2 = torch.einsum("bhij,ijc->hc", patches_BHLL, _offsets(grid).to(map_BHNN))
    return total_H2 / patches_BHLL.sum((0, 2, 3))[:, None]


def gating_values(model: nn.Module) -> dict[str, Tensor]:
    """sigmoid(gate) of each GPSA layer: (H,), the share of attention paid to position (Eq. 7). Empty without GPSA."""
    named = [(name, getattr(module, "gating_param", None)) for name, module in model.named_modules()]
    return {name: gate.detach().sigmoid() for name, gate in named if isinstance(gate, Tensor)}


def gaussian_heads(model: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
    """Each quadratic encoding's learned centers (H, 2), as (rows, columns) of key - query, and inverse covariances
    (H, 2, 2). Empty for any other model."""
    found = {}
    for name, layer in model.named_modules():
        if isinstance(layer, QuadraticAttention):  # Section 4.2 of arXiv:1911.03584
            spread_H11 = layer.spreads.detach()[:, None, None]
            found[name] = layer.centers_H2.detach(), spread_H11**2 * torch.eye(2).to(spread_H11)
        elif isinstance(layer, GeneralizedQuadraticAttention):  # its Appendix A.1
            spread_H22 = layer.spreads.detach()
            found[name] = layer.centers_H2.detach(), spread_H22 @ spread_H22.mT
    return found


def attention_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The layers that can be probed, by name; {} for a model without attention."""
    named = model.named_modules()
    return {name: one for name, one in named if hasattr(one, "attention_map") or isinstance(one, TimmAttention)}


def probe(model: nn.Module, images: Tensor, measure: Callable[[Tensor], Any]) -> dict[str, Any]:
    """Run the model once and measure each attention layer's map while it is there, so that one is held at a time.

    Args:
        images: tensor (B, 3, S, S) on the model's device.
        measure: function of a map (B, H, N, N).

    Returns:
        answers of ``measure``, by the layers' names; SpecError for a model without attention.
    """
    layers = attention_layers(model)
    if not layers:
        raise SpecError(f"{type(model).__name__} has no attention layer to probe; expected one with an attention_map")
    found: dict[str, Any] = {}

    def watch(name: str, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        found[name] = measure(attention_map(module, *arguments))

    handles = [module.register_forward_pre_hook(partial(watch, name)) for name, module in layers.items()]
    was_training = model.training
    try:
        with torch.no_grad():
            model.eval()(images)
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    return found


def attention_map(layer: Any, x_BND: Tensor, *arguments: Any) -> Tensor:
    """The map that a layer applies to its tokens without materialising it: (B, H, N, N), rows sum to one."""
    if hasattr(layer, "attention_map"):
        ours: Tensor = layer.attention_map(x_BND, *arguments)
        return ours
    batch, tokens, _ = x_BND.shape
    q_BHNE, k_BHNE, _ = layer.qkv(x_BND).reshape(batch, tokens, 3, layer.num_heads, -1).permute(2, 0, 3, 1, 4)
    return content_logits(layer.q_norm(q_BHNE), layer.k_norm(k_BHNE)).softmax(-1)


def token_grid(model: nn.Module, num_tokens: int) -> tuple[int, int]:
    """(rows, columns) of the model's tokens, from its own grid, else its patch embedding's, else the nearest square."""
    grid = getattr(model, "grid", None) or getattr(getattr(model, "patch_embed", None), "grid_size", None)
    rows, columns = grid or (math.isqrt(num_tokens),) * 2
    if not 0 <= num_tokens - rows * columns <= 1:
        raise SpecError(f"{num_tokens} tokens are no {rows} x {columns} grid with at most one class token")
    return rows, columns


def _offsets(grid: tuple[int, int]) -> Tensor:
    """Position of key minus position of query: (L, L, 2) as (rows, columns)."""
    place_L2 = torch.cartesian_prod(torch.arange(grid[0]), torch.arange(grid[1])).reshape(-1, 2)
    return place_L2[None, :] - place_L2[:, None]


def between_patches(map_BHNN: Tensor, num_patches: int) -> Tensor:
    """Without the rows and columns of a class token, which comes first."""
    return map_BHNN[:, :, -num_patches:, -num_patches:]
