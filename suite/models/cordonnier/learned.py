"""Attention by learned embeddings of row and column offsets, without and with content (arXiv:1911.03584, Section 4.3).

Shape legend: B batch, N tokens (R rows * C columns, row-major), D width, H heads. Maps and scores are [query, key];
an offset is key - query, as (row, column).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suite.base.errors import SpecError
from suite.models.cordonnier.attention import Grid, SeparableAttention, merged_linear


class AxisEmbeddings(nn.Module):
    """A vector for each row offset and each column offset: (2R - 1, E) and (2C - 1, E), from N(0, 1)."""

    def __init__(self, grid: Grid, dim: int) -> None:
        super().__init__()
        self.rows, self.columns = (nn.Parameter(torch.randn(2 * length - 1, dim)) for length in grid)


def by_offset(table: Tensor) -> Tensor:
    """Entries (2L - 1, ...) of the offsets 1 - L to L - 1, laid out for each query and key: (L, L, ...)."""
    length = (len(table) + 1) // 2
    place = torch.arange(length, device=table.device)
    return table[place[None, :] - place[:, None] + length - 1]


class LearnedAttention(SeparableAttention):
    """Learned relative encoding, Section 4.3, without content; embeddings of rows and columns are ``position_dim``
    wide.

        A_h(offset) = w_row,h . row[offset_1] + w_column,h . column[offset_2]

    Differs: embeddings are 400 wide per axis and each layer has its own, as in the authors' code and as only fits the
    published 12.3 M parameters; by the text they are floor(400 / 2) wide and shared by all layers. Like there, scores
    are not scaled. ``position_dim=200`` gives the text's width.
    """

    def __init__(
        self, dim: int, num_heads: int, grid: Grid, attention_dropout: float, *, position_dim: int = 400
    ) -> None:
        super().__init__(dim, num_heads, grid, attention_dropout)
        self.positions = AxisEmbeddings(grid, position_dim)
        self.row_scores = nn.Linear(position_dim, num_heads, bias=False)
        self.column_scores = nn.Linear(position_dim, num_heads, bias=False)

    def axis_scores(self) -> tuple[Tensor, Tensor]:
        rows_RRH = by_offset(self.row_scores(self.positions.rows))
        columns_CCH = by_offset(self.column_scores(self.positions.columns))
        return rows_RRH.permute(2, 0, 1), columns_CCH.permute(2, 0, 1)


class ContentAttention(nn.Module):
    """Learned relative encoding with content, from the authors' later code: Eq. 8 without its last two terms.

        A_h,qk = (q_h . k_h + q_h . [row[offset_1]; column[offset_2]]) / sqrt(D),   q_h, k_h of width D

    Each embedding is D / 2 wide and meets its half of the query. forward: (B, N, D) -> (B, N, D).
    """

    def __init__(self, dim: int, num_heads: int, grid: Grid, attention_dropout: float) -> None:
        super().__init__()
        if dim % 2:
            raise SpecError(f"dim is {dim}, expected an even number: row and column offsets each meet half of a query")
        self.num_heads = num_heads
        self.grid = grid
        self.attention_dropout = attention_dropout
        self.query = nn.Linear(dim, num_heads * dim)
        self.key = nn.Linear(dim, num_heads * dim)
        self.positions = AxisEmbeddings(grid, dim // 2)
        self.out = merged_linear(num_heads, dim)

    def attention_map(self, x_BND: Tensor) -> Tensor:
        """The map without dropout: (B, H, N, N), rows sum to one."""
        batch, tokens, dim = x_BND.shape
        q_BNHD, k_BNHD = (part(x_BND).view(batch, tokens, self.num_heads, dim) for part in (self.query, self.key))
        q_BHND = q_BNHD.transpose(1, 2) * dim**-0.5
        q_row, q_column = q_BHND.unflatten(2, self.grid).chunk(2, dim=-1)
        rows_BHRCR = torch.einsum("bhrce,rse->bhrcs", q_row, by_offset(self.positions.rows))
        columns_BHRCC = torch.einsum("bhrce,cse->bhrcs", q_column, by_offset(self.positions.columns))
        position = (rows_BHRCR[..., :, None] + columns_BHRCC[..., None, :]).reshape(batch, -1, tokens, tokens)
        return (q_BHND @ k_BNHD.permute(0, 2, 3, 1) + position).softmax(-1)

    def forward(self, x_BND: Tensor) -> Tensor:
        map_BHNN = F.dropout(self.attention_map(x_BND), self.attention_dropout, self.training)
        batch, tokens, dim = x_BND.shape
        mixed_BMD = map_BHNN.flatten(1, 2) @ x_BND  # M = H * N: the heads share the values
        mixed_BNHD = mixed_BMD.view(batch, self.num_heads, tokens, dim).transpose(1, 2)
        return self.out(mixed_BNHD.reshape(batch, tokens, -1))
