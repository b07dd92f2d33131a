"""Layers and checks that two or more model families share."""

from collections.abc import Callable

import torch
from timm.layers import DropPath, Mlp, trunc_normal_
from torch import Tensor, nn

from suite.base.errors import SpecError


def check_divides(divisor_name: str, divisor: int, name: str, value: int) -> None:
    """Raise SpecError unless ``divisor`` divides ``value``.

    Args:
        divisor_name, name: words for the two in the message.
    """
    if divisor < 1 or value % divisor:
        allowed = [d for d in range(1, value + 1) if value % d == 0]
        raise SpecError(f"{divisor_name} {divisor} does not divide {name} {value}; allowed: {allowed}")


def check_positive(name: str, value: float) -> None:
    """Raise SpecError unless ``value`` is above zero."""
    if not value > 0:
        raise SpecError(f"{name} is {value}, expected a number above 0")


ImageSize = int | tuple[int, int]  # pixels: the side of a square, or (rows, columns)


def patch_grid(image_size: ImageSize, patch_size: int) -> tuple[int, int]:
    """(rows, columns) of patches; raises SpecError unless the patch divides both sides."""
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
    check_divides("patch_size", patch_size, "image_size", height)
    check_divides("patch_size", patch_size, "image_size", width)
    return height // patch_size, width // patch_size


def at_least_fp32(values: Tensor) -> Tensor:
    """In float32 where they are of lower precision: gates and the places that heads look at lose too much there."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def content_logits(q_BHNE: Tensor, k_BHNE: Tensor) -> Tensor:
    """q k^T / sqrt(E), in float32 under autocast too, where the bare product may overflow: (B, H, N, N)."""
    with torch.autocast(q_BHNE.device.type, enabled=False):
        return at_least_fp32(q_BHNE) @ at_least_fp32(k_BHNE).mT * q_BHNE.shape[-1] ** -0.5


def position_mask(logits_HNN: Tensor, dtype: torch.dtype) -> Tensor:
    """Position scores for fused attention in ``dtype``. In a lower precision they are less the largest of the query,
    which no softmax sees: those that matter are then near zero, where they are rounded least, and none overflows."""
    if logits_HNN.dtype == dtype:
        return logits_HNN
    return (logits_HNN - logits_HNN.detach().amax(-1, keepdim=True)).to(dtype)


def outer(rows_HRR: Tensor, columns_HCC: Tensor, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Combine the quantities of two axes for each query and key of the grid: (H, N, N)."""
    heads, tokens = len(rows_HRR), rows_HRR.shape[-1] * columns_HCC.shape[-1]
    return combine(rows_HRR[:, :, None, :, None], columns_HCC[:, None, :, None, :]).reshape(heads, tokens, tokens)


def init_linears(model: nn.Module, std: float) -> None:
    """Draw linear weights from a truncated normal, and set linear biases to zero."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@torch.no_grad()
def scale_linears(model: nn.Module, factor: float) -> None:
    """Multiply all linear weights."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.mul_(factor)


class Block(nn.Module):
    """Pre-LN block: x + attention(LN(x)), then x + MLP(LN(x)), both with stochastic depth; MLP four times as wide."""

    def __init__(self, dim: int, attention: nn.Module, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = attention
        self.drop_path = DropPath(drop_path)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, hidden_features=4 * dim)

    def forward(self, x_BND: Tensor, *grid: tuple[int, int]) -> Tensor:
        x_BND = x_BND + self.drop_path(self.attn(self.norm1(x_BND), *grid))
        return x_BND + self.drop_path(self.mlp(self.norm2(x_BND)))
