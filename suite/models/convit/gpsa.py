"""Positional self-attention, gated (GPSA) and plain (PSA): the layers of ConViT (arXiv:2103.10697, Sec. 2 and 3).

Shape legend: B batch, N patches (rows * columns, row-major), R rows, C columns, D width, H heads, E = D / H.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suite.base.errors import SpecError
from suite.models.layers import at_least_fp32, content_logits, outer, position_mask

Grid = tuple[int, int]


class PositionalSelfAttention(nn.Module):
    """Vanilla PSA, Eq. 4: A_h = softmax(q_h k_h^T / sqrt(E) + w_h . r), out = concat_h(A_h V_h) W_out + b_out.

    The relative position is r = (dx, dy, dx^2 + dy^2) with d = key - query, in patches.
    """

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qk = nn.Linear(dim, 2 * dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.pos_proj = nn.Linear(3, num_heads)

    def init_as_convolution(self, locality_strength: float = 1.0) -> None:
        """Eq. 5: head h attends to the patch at its kernel offset; values pass unchanged.

        Head h has the offset (row, column) = (h mod k, h div k) - (k - 1) / 2 with k = sqrt(heads). For an even k
        the offsets lie between patches, and a head shares its attention among the four nearest.
        """
        side = math.isqrt(self.num_heads)
        if side * side != self.num_heads:
            raise SpecError(
                f"a convolutional initialization needs a square number of heads, found {self.num_heads}; "
                f"allowed near it: {side**2}, {(side + 1) ** 2}, or conv_init=False"
            )
        head_H = torch.arange(self.num_heads)
        center_H2 = torch.stack([head_H // side, head_H % side], 1) - (side - 1) / 2  # (column, row)
        with torch.no_grad():
            nn.init.eye_(self.v.weight)
            weight_H3 = torch.cat([2 * center_H2, -torch.ones(self.num_heads, 1)], 1)
            self.pos_proj.weight.copy_(locality_strength * weight_H3)
            nn.init.zeros_(self.pos_proj.bias)

    def freeze(self, *, gates: bool, everything: bool) -> None:
        """Switch training off for all parameters; plain PSA has no gates."""
        if gates and not everything:
            raise SpecError("attention='summed' has no gates: train_gates=False needs attention='gated'")
        self.requires_grad_(not everything)

    def split(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of each head, each (B, H, N, E)."""
        batch, patches, _ = x_BND.shape
        q_BHNE, k_BHNE = self.qk(x_BND).reshape(batch, patches, 2, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        v_BHNE = self.v(x_BND).reshape(batch, patches, self.num_heads, -1).transpose(1, 2)
        return q_BHNE, k_BHNE, v_BHNE

    def position_logits(self, grid: Grid) -> tuple[Tensor, Tensor]:
        """w_h . r as a term over rows (H, R, R) and one over columns (H, C, C), [query, key]; it is their sum."""
        weight_H3, bias_H = at_least_fp32(self.pos_proj.weight), at_least_fp32(self.pos_proj.bias)
        slope_x_H11, slope_y_H11, square_H11 = weight_H3[:, :, None, None].unbind(1)
        half_bias_H11 = bias_H[:, None, None] / 2  # a constant: no effect on a softmax, as in the paper

        def along(length: int, slope_H11: Tensor) -> Tensor:
            place = torch.arange(length, device=slope_H11.device, dtype=slope_H11.dtype)
            offset = place[None, :] - place[:, None]
            return slope_H11 * offset + square_H11 * offset**2 + half_bias_H11

        return along(grid[0], slope_y_H11), along(grid[1], slope_x_H11)

    def attention_map(self, x_BND: Tensor, grid: Grid) -> Tensor:
        """The map that ``forward`` applies: (B, H, N, N), rows sum to one."""
        q_BHNE, k_BHNE, _ = self.split(x_BND)
        return (content_logits(q_BHNE, k_BHNE) + outer(*self.position_logits(grid), torch.add)).softmax(-1)

    def forward(self, x_BND: Tensor, grid: Grid) -> Tensor:
        q_BHNE, k_BHNE, v_BHNE = self.split(x_BND)
        position_HNN = position_mask(outer(*self.position_logits(grid), torch.add), v_BHNE.dtype)
        mixed_BHNE = F.scaled_dot_product_attention(q_BHNE, k_BHNE, v_BHNE, attn_mask=position_HNN)
        return self.proj(mixed_BHNE.transpose(1, 2).reshape(x_BND.shape))


class GatedPositionalSelfAttention(PositionalSelfAttention):
    """GPSA, Eqs. 6 and 7.

        A_h = (1 - sigmoid(gate_h)) softmax(q_h k_h^T / sqrt(E)) + sigmoid(gate_h) softmax(w_h . r)

    Because w_h . r is a sum of a term in dx and a term in dy, its softmax over a whole grid is the outer product
    of a softmax over columns and one over rows. It is applied to the values as two small matrix products and
    never materialised; likewise the content half by fused attention. The paper's outer ``normalize`` is the
    identity, since both halves have rows that sum to one.
    """

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__(dim, num_heads)
        self.gating_param = nn.Parameter(torch.ones(num_heads))

    def freeze(self, *, gates: bool, everything: bool) -> None:
        """Freeze the gates at 0 (content and position weigh the same), or every parameter."""
        if gates:
            nn.init.zeros_(self.gating_param)
        self.requires_grad_(not everything)
        self.gating_param.requires_grad_(not (gates or everything))

    def position_softmaxes(self, grid: Grid) -> tuple[Tensor, Tensor]:
        """The position attention's factors: (H, R, R) over rows and (H, C, C) over columns, [query, key]."""
        rows_HRR, columns_HCC = self.position_logits(grid)
        return rows_HRR.softmax(-1), columns_HCC.softmax(-1)

    def mix_by_position(self, v_BHNE: Tensor, grid: Grid, share_H11: Tensor | float = 1.0) -> Tensor:
        """share softmax(w . r) V as two products: first along the columns, then along the rows."""
        rows_HRR, columns_HCC = self.position_softmaxes(grid)
        rows_HRR = rows_HRR * share_H11
        batch, heads, _, width = v_BHNE.shape
        v_BHRCE = v_BHNE.reshape(batch, heads, *grid, width)
        mixed = columns_HCC[:, None].to(v_BHNE.dtype) @ v_BHRCE
        mixed = rows_HRR.to(v_BHNE.dtype) @ mixed.reshape(batch, heads, grid[0], -1)
        return mixed.reshape(v_BHNE.shape)

    def attention_map(self, x_BND: Tensor, grid: Grid) -> Tensor:
        q_BHNE, k_BHNE, _ = self.split(x_BND)
        content_BHNN = content_logits(q_BHNE, k_BHNE).softmax(-1)
        position_BHNN = outer(*self.position_softmaxes(grid), torch.mul).expand_as(content_BHNN)
        return torch.lerp(content_BHNN, position_BHNN, at_least_fp32(self.gating_param).sigmoid()[:, None, None])

    def forward(self, x_BND: Tensor, grid: Grid) -> Tensor:
        q_BHNE, k_BHNE, v_BHNE = self.split(x_BND)
        content_BHNE = F.scaled_dot_product_attention(q_BHNE, k_BHNE, v_BHNE)
        gate_H11 = at_least_fp32(self.gating_param)[:, None, None]
        if content_BHNE.dtype != gate_H11.dtype:
            # 1 - sigmoid(gate) from a sigmoid of 8 bits is wrong by 1 % at gate 3, and 0 from 6.3 on
            content_share_H11 = (-gate_H11).sigmoid().to(content_BHNE.dtype)
            mixed_BHNE = content_BHNE * content_share_H11 + self.mix_by_position(v_BHNE, grid, gate_H11.sigmoid())
        else:
            mixed_BHNE = torch.lerp(content_BHNE, self.mix_by_position(v_BHNE, grid), gate_H11.sigmoid())
        return self.proj(mixed_BHNE.transpose(1, 2).reshape(x_BND.shape))
