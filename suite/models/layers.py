"""What two or more model families share."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from suite.errors import SpecError


def check_divides(divisor_name: str, divisor: int, name: str, value: int) -> None:
    """Raise SpecError unless ``divisor`` divides ``value``."""
    if divisor < 1 or value % divisor:
        allowed = [d for d in range(1, value + 1) if value % d == 0]
        raise SpecError(f"{divisor_name} {divisor} does not divide {name} {value}; allowed: {allowed}")


class SelfAttention(nn.Module):
    """softmax(q k^T / sqrt(E)) v per head (arXiv:1706.03762, Eq. 1), one fused Linear for q, k and v."""

    def __init__(self, dim: int, num_heads: int, qkv_bias: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x_BND: Tensor) -> Tensor:
        batch, tokens, dim = x_BND.shape
        qkv = self.qkv(x_BND).reshape(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed_BHNE = F.scaled_dot_product_attention(*qkv)
        return self.proj(mixed_BHNE.transpose(1, 2).reshape(batch, tokens, dim))
