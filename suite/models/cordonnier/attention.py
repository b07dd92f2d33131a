"""The attention layers of arXiv:1911.03584: heads that look by position, with learned widths, centers or embeddings.

Every layer gathers each head's weighted mean of the raw hidden states; values and output are one Linear (Eq. 12):

    MHSA(X)_q = b_out + sum_h (sum_k softmax(A_h,q)_k X_k) W_h,   W_h = W_val,h W_out,h

Shape legend: B batch, N tokens (R rows * C columns, row-major), D width, H heads. Maps and scores are [query, key];
an offset is key - query, as (row, column).
"""

import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suite.models.cordonnier.separable_mixing import mix_by_axes, mix_densely
from suite.models.layers import at_least_fp32, outer

Grid = tuple[int, int]  # rows, columns


def centered_offsets(centers_H2: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """key - query - center along each axis: (H, R, R) and (H, C, C)."""
    centers_H2 = at_least_fp32(centers_H2)
    places = [torch.arange(length, device=centers_H2.device, dtype=centers_H2.dtype) for length in grid]
    rows, columns = (place[None, :] - place[:, None] for place in places)
    return rows - centers_H2[:, 0, None, None], columns - centers_H2[:, 1, None, None]


def merged_linear(num_heads: int, dim: int) -> nn.Linear:
    """Values and output in one: (H * D) -> D. Without heads it is a bias."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        return nn.Linear(num_heads * dim, dim)


class PositionAttention(nn.Module):
    """Heads whose map depends on positions alone: one map, and in training one dropout mask, serves the batch.

    Args:
        grid: (rows, columns) of tokens.
        attention_dropout: probability with which an entry of the map is dropped in training.

    forward: (B, N, D) -> (B, N, D).
    """

    def __init__(self, dim: int, num_heads: int, grid: Grid, attention_dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.grid = grid
        self.attention_dropout = attention_dropout
        self.out = merged_linear(num_heads, dim)

    def position_map(self) -> Tensor:
        """The map: (H, N, N), rows sum to one."""
        raise NotImplementedError

    def attention_map(self, x_BND: Tensor) -> Tensor:
        """The map of every image, without dropout: (B, H, N, N), a view of one (H, N, N)."""
        return self.position_map().expand(x_BND.shape[0], -1, -1, -1)

    def mix(self, x_BND: Tensor) -> Tensor:
        """Each head's weighted mean of the tokens, heads side by side: (B, N, H * D)."""
        return mix_densely(x_BND, F.dropout(self.position_map(), self.attention_dropout, self.training))

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.out(self.mix(x_BND))


class SeparableAttention(PositionAttention):
    """Scores that are a sum of a row and a column term: the map is a row softmax times a column softmax.

    It is applied as two small products, except where its entries are dropped out one by one.
    """

    def axis_scores(self) -> tuple[Tensor, Tensor]:
        """Scores before the softmax: (H, R, R) over rows and (H, C, C) over columns."""
        raise NotImplementedError

    def position_map(self) -> Tensor:
        rows_HRR, columns_HCC = self.axis_scores()
        return outer(rows_HRR.softmax(-1), columns_HCC.softmax(-1), torch.mul)

    def mix(self, x_BND: Tensor) -> Tensor:
        if self.training and self.attention_dropout > 0:
            return super().mix(x_BND)
        rows_HRR, columns_HCC = self.axis_scores()
        return mix_by_axes(x_BND, rows_HRR.softmax(-1), columns_HCC.softmax(-1))


class GaussianHeads(PositionAttention):
    """Heads that look at a Gaussian of learned center and spread.

    Args:
        center_std: deviation of a center's initial coordinates; by default the paper's N(0, 2 I), 2.0 in the authors'
            code.
        spread_std: deviation of the noise on the initial spread of a round head; by default the paper's N(0, 0.01),
            0.01 in the authors' code.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        grid: Grid,
        attention_dropout: float,
        *,
        center_std: float = math.sqrt(2),
        spread_std: float = 0.1,
    ) -> None:
        super().__init__(dim, num_heads, grid, attention_dropout)
        self.centers_H2 = nn.Parameter(center_std * torch.randn(num_heads, 2))
        round_spread = self.round_spread()
        self.spreads = nn.Parameter(round_spread + spread_std * torch.randn(num_heads, *round_spread.shape))

    def round_spread(self) -> Tensor:
        """The spread of one head that looks alike in all directions, at a standard deviation of one token."""
        raise NotImplementedError


class QuadraticAttention(GaussianHeads, SeparableAttention):
    """Quadratic encoding, Eqs. 9 and 14: a Gaussian of learned center and width per head.

        A_h(offset) = -s_h^2 / 2 |offset - center_h|^2,   so alpha_h = s_h^2 / 2

    Initially s = 1, with noise.

    Differs: nothing. The paper's offset is query - key in Eq. 8 and key - query in Eq. 15; this is the latter.
    """

    def round_spread(self) -> Tensor:
        return torch.ones(())

    def axis_scores(self) -> tuple[Tensor, Tensor]:
        alpha_H11 = at_least_fp32(self.spreads)[:, None, None] ** 2 / 2
        rows_HRR, columns_HCC = centered_offsets(self.centers_H2, self.grid)
        return -alpha_H11 * rows_HRR**2, -alpha_H11 * columns_HCC**2


class GeneralizedQuadraticAttention(GaussianHeads):
    """Generalized quadratic encoding, Eq. 16: a Gaussian of any covariance, which is not separable.

        A_h(offset) = -1/2 (offset - center_h)^T S_h S_h^T (offset - center_h),   S_h S_h^T the inverse covariance

    Initially S = I, with noise on each entry.
    """

    def round_spread(self) -> Tensor:
        return torch.eye(2)

    def position_map(self) -> Tensor:
        # -1/2 |S^T (offset - center)|^2: multiplied out, its terms cancel where S S^T is far from round
        rows_HRR, columns_HCC = centered_offsets(self.centers_H2, self.grid)
        spreads_H2211 = self.spreads[..., None, None]
        first_HNN, second_HNN = (
            outer(spreads_H2211[:, 0, axis] * rows_HRR, spreads_H2211[:, 1, axis] * columns_HCC, torch.add)
            for axis in range(2)
        )
        return (-0.5 * (first_HNN**2 + second_HNN**2)).softmax(-1)
