"""The theorems as code: when attention is a convolution, how many heads that takes, why frozen filters suffice.

    Cordonnier et al., arXiv:1911.03584     Lemmas 1, 2, Theorem 1   ``pixels_as_attention``
    Li et al., Can ViTs Perform Convolution Lemma 2, Theorem 1, A.2  ``patches_as_attention``, ``num_heads``
                                            Theorems 5 and 6         ``pixel_kernel_matrix``, ``patch_kernel_matrix``
    Structured Initialization for ViTs      Def. 1, Proposition 1    ``is_spanned``, ``channel_mixing``

``suite.models.cmhsa`` trains with the second construction; the others are here to be read and tested.

Legend: B batch, N tokens (rows * columns of a grid, row-major), H heads, D features of an input token and O of an
output token (row in patch, column in patch, channel), K kernel side, P patch side, S stride. Offsets are key - query,
(row, column), in tokens. Convolutions are torch's: weight (D_out, D_in, K, K), K odd, padded by dilation * (K - 1) / 2.

Differs: the papers write a head's offset now as query - key (Lemma 2 of both), now as key - query (Appendix A.2's
X_{q + delta}); here it is key - query. Neither paper says what a head does whose target lies outside the image:

    borders="null_key"  one more key, of value 0, that scores what the missing target would: exact zero padding
    borders="literal"   nothing: Li's head then attends uniformly, exact in the interior only; Cordonnier's, for a
                        large alpha, attends to the nearest pixel, exact replicate padding
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from suite.base.errors import SpecError, check_name
from suite.models.layers import check_divides

Borders = Literal["null_key", "literal"]


@dataclass(frozen=True)
class AttentionLayer:
    """An MHSA layer whose attention ignores its input (W_Q = W_K = 0): Eq. 11 of arXiv:1911.03584.

        MHSA(X) = b + sum_h A_h X W_h,   W_h = W_V,h W_O,h

    Attributes:
        attention_HNN: [query, key]; rows sum to one, or to less where the null key takes the rest.
        weight_HDO: the value and output matrices of each head, merged.
        bias_O: the output bias.
    """

    attention_HNN: Tensor
    weight_HDO: Tensor
    bias_O: Tensor

    def __call__(self, x_BND: Tensor) -> Tensor:
        return torch.einsum("hqk,bkd,hdo->bqo", self.attention_HNN, x_BND, self.weight_HDO) + self.bias_O


def check_kernel_size(kernel_size: int) -> None:
    """Raise SpecError unless the kernel has a center."""
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise SpecError(f"kernel_size is {kernel_size}, expected an odd number; an even kernel has no center")


def patch_offsets(kernel_size: int, patch_size: int, dilation: int = 1) -> list[int]:
    """Eq. 5: the offsets, along one axis, of patches that hold a pixel in the receptive field of a patch's pixels.

    A tap that reaches d pixels leads from a patch to the patches floor(d / P) and ceil(d / P). For a dilation up to P
    these are all of -r to r with r = ceil(dilation * (K - 1) / 2P); beyond, the patches between two taps drop out.

    Raises:
        SpecError: an even kernel, or a size below 1.
    """
    check_kernel_size(kernel_size)
    if min(patch_size, dilation) < 1:
        raise SpecError(f"patch_size is {patch_size} and dilation {dilation}, expected both to be at least 1")
    taps = range(-(kernel_size // 2), kernel_size // 2 + 1)
    reaches = [tap * dilation for tap in taps]
    return sorted({d // patch_size for d in reaches} | {-(-d // patch_size) for d in reaches})


def num_heads(kernel_size: int, patch_size: int, dilation: int = 1) -> int:
    """Theorem 1: (2 ceil((K - 1) / 2P) + 1)^2; at P = 1 Cordonnier's K^2, for any dilation."""
    return len(patch_offsets(kernel_size, patch_size, dilation)) ** 2


def head_offsets(kernel_size: int, patch_size: int, dilation: int = 1) -> Tensor:
    """The offset of each head's target, row-major: (H, 2)."""
    offsets = torch.tensor(patch_offsets(kernel_size, patch_size, dilation))
    return torch.cartesian_prod(offsets, offsets).reshape(-1, 2)


def positions(grid: tuple[int, int]) -> Tensor:
    """(row, column) of each token: (N, 2)."""
    return torch.cartesian_prod(torch.arange(grid[0]), torch.arange(grid[1])).reshape(-1, 2)


def targets_outside(grid: tuple[int, int], offsets_H2: Tensor) -> Tensor:
    """Whether a query's target lies outside the image: (H, N), bool."""
    target_HN2 = positions(grid) + offsets_H2[:, None]
    return ((target_HN2 < 0) | (target_HN2 >= torch.tensor(grid))).any(-1)


def softmax_over_keys(scores_HNN: Tensor, null_score_HN: Tensor, borders: Borders) -> Tensor:
    """softmax over the keys, with the null key (and without its column) or literally: (H, N, N)."""
    check_name("borders", borders, get_args(Borders))
    if borders == "literal":
        return scores_HNN.softmax(-1)
    return torch.cat([scores_HNN, null_score_HN[..., None]], -1).softmax(-1)[..., :-1]


def quadratic_scores(grid: tuple[int, int], centers_H2: Tensor, alpha: float) -> Tensor:
    """Cordonnier's Eq. 9: v . r = -alpha (|delta|^2 - 2 delta . Delta), v = -alpha (1, -2 Delta_1, -2 Delta_2),
    r = (|delta|^2, delta_1, delta_2), which is -alpha |delta - Delta|^2 up to a constant of the head: (H, N, N).
    """
    place_N2 = positions(grid).to(centers_H2)
    delta_NN2 = place_N2[None, :] - place_N2[:, None]
    r_NN3 = torch.cat([delta_NN2.square().sum(-1, keepdim=True), delta_NN2], -1)
    v_H3 = -alpha * torch.cat([torch.ones_like(centers_H2[:, :1]), -2 * centers_H2], -1)
    return torch.einsum("hc,qkc->hqk", v_H3, r_NN3)


def pixels_as_attention(
    weight: Tensor,
    bias: Tensor,
    grid: tuple[int, int],
    *,
    dilation: int = 1,
    alpha: float = 40.0,
    borders: Borders = "null_key",
) -> AttentionLayer:
    """Build Cordonnier's Theorem 1: K^2 heads on pixels; head (a, b) attends to its tap and W_h is the kernel at it.

    The error is at most the sum of exp(-alpha |delta - Delta|^2) over the other pixels, about 4 exp(-alpha).

    Args:
        weight: the convolution's (D_out, D_in, K, K).
        bias: (D_out,).
        grid: rows and columns of pixels.
        dilation: pixels between the kernel's taps.
        alpha: how sharply a head looks.
        borders: where a head looks whose tap lies outside the image.
    """
    offsets_H2 = head_offsets(weight.shape[-1], 1, dilation)
    scores_HNN = quadratic_scores(grid, offsets_H2.to(weight), alpha)
    target_score_H1 = alpha * offsets_H2.square().sum(-1, keepdim=True)
    null_score_HN = torch.where(targets_outside(grid, offsets_H2), target_score_H1, -torch.inf).to(weight)
    attention_HNN = softmax_over_keys(scores_HNN, null_score_HN, borders)
    return AttentionLayer(attention_HNN, weight.permute(2, 3, 1, 0).flatten(0, 1), bias)


def bias_table(grid: tuple[int, int], offsets_H2: Tensor, strength: float) -> Tensor:
    """Li's Lemma 2: b is M at the head's offset, else 0: (H, 2R-1, 2C-1), offset 0 in the middle."""
    row, column = (torch.arange(1 - side, side) for side in grid)
    return strength * ((offsets_H2[:, :1] == row)[:, :, None] & (offsets_H2[:, 1:] == column)[:, None, :])


def table_index(grid: tuple[int, int]) -> Tensor:
    """Where a (query, key) pair's offset lies in the flattened table: (N, N), so B = table.flatten(1)[:, index]."""
    place_N2 = positions(grid)
    row_NN, column_NN = (place_N2[None, :] - place_N2[:, None] + torch.tensor(grid) - 1).unbind(-1)
    return row_NN * (2 * grid[1] - 1) + column_NN


def output_projection(weight: Tensor, patch_size: int, stride: int = 1, dilation: int = 1) -> Tensor:
    """Build A.2's W_O: [h, (source pixel, i), (target pixel, j)] is the kernel at source - target, 0 outside it.

    Along one axis a 0/1 tensor says which tap leads from a target pixel to a source pixel of the patch at an offset;
    the kernel times one such tensor per axis is W_O. An output patch has side P / stride.

    Args:
        weight: the convolution's (D_out, D_in, K, K).
        patch_size: P, in pixels.
        stride, dilation: the convolution's.

    Returns:
        (H, P * P * D_in, (P / S)^2 * D_out).

    Raises:
        SpecError: an even or oblong kernel, or a stride that does not divide the patch.
    """
    kernel_size = weight.shape[-1]
    if weight.shape[-2] != kernel_size:
        raise SpecError(f"the kernel is {weight.shape[-2]} x {kernel_size}, expected a square one")
    check_divides("stride", stride, "patch_size", patch_size)
    patch_H = torch.tensor(patch_offsets(kernel_size, patch_size, dilation), device=weight.device) * patch_size
    source_P, target_T = (torch.arange(0, patch_size, step, device=weight.device) for step in (1, stride))
    tap_K = (torch.arange(kernel_size, device=weight.device) - kernel_size // 2) * dilation
    reach_HPT1 = (patch_H[:, None, None] + source_P[:, None] - target_T)[..., None]
    leads_HPTK = (reach_HPT1 == tap_K).to(weight.dtype)
    product = torch.einsum("oiab,YyTa,XxUb->YXyxiTUo", weight, leads_HPTK, leads_HPTK)
    return product.flatten(5).flatten(2, 4).flatten(0, 1)


def patches_as_attention(
    weight: Tensor,
    bias: Tensor,
    grid: tuple[int, int],
    *,
    patch_size: int,
    stride: int = 1,
    dilation: int = 1,
    strength: float = 40.0,
    borders: Borders = "null_key",
) -> AttentionLayer:
    """Build Li's Theorem 1: a head per offset of ``patch_offsets`` squared; W_V = I, so that W_h = W_O,h.

    An entry of the attention is wrong by at most N exp(-M); the paper's M = ``strength`` = 40 is float64's precision.

    Args:
        weight: the convolution's (D_out, D_in, K, K).
        bias: (D_out,).
        grid: rows and columns of patches.
        patch_size: in pixels.
        stride, dilation: the convolution's.
        strength: M, how sharply a head looks.
        borders: where a head looks whose patch lies outside the image.
    """
    offsets_H2 = head_offsets(weight.shape[-1], patch_size, dilation)
    weight_HDO = output_projection(weight, patch_size, stride, dilation)
    scores_HNN = bias_table(grid, offsets_H2, strength).flatten(1)[:, table_index(grid)]
    null_score_HN = torch.where(targets_outside(grid, offsets_H2), strength, -torch.inf)
    attention_HNN = softmax_over_keys(scores_HNN.to(weight), null_score_HN.to(weight), borders)
    return AttentionLayer(attention_HNN, weight_HDO, bias.repeat((patch_size // stride) ** 2))


def to_patches(images: Tensor, patch_size: int) -> Tensor:
    """Eq. 16: (B, channels, R * P, C * P) -> (B, N, P * P * channels), (row in patch, column in patch, channel)."""
    batch, channels, height, width = images.shape
    split = images.reshape(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return split.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, patch_size**2 * channels)


def to_images(x_BND: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
    """The inverse of ``to_patches``."""
    split = x_BND.unflatten(2, (patch_size, patch_size, -1)).unflatten(1, grid)
    return split.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)


def pixel_kernel_matrix(weight: Tensor) -> Tensor:
    """Theorem 5, Eq. 8: the kernel as (K^2, D_in * D_out).

    Each head contributes a matrix a_h w_h^T of rank one, so a convolution takes as many heads as this has rank.
    """
    return weight.permute(2, 3, 1, 0).flatten(2).flatten(0, 1)


def patch_kernel_matrix(weight: Tensor, patch_size: int) -> Tensor:
    """Theorem 6, Eq. 20: one column per offset, one row per (target pixel p, source pixel q).

    W A = W^C with as many columns of W as heads, so again a convolution takes as many heads as this has rank. If
    P >= K, a row has at most one entry, hence the columns are orthogonal; for K >= 3 and no zero tap all nine differ
    from zero. ``(P^2 D_out * P^2 D_in, H)``.
    """
    return output_projection(weight, patch_size).permute(2, 1, 0).flatten(0, 1)


def distance_with_heads(matrix: Tensor, heads: int) -> float:
    """Frobenius distance (Eckart-Young) from a kernel's matrix to what ``heads`` heads can reach at best."""
    return float(torch.linalg.svdvals(matrix)[heads:].square().sum().sqrt())


def mixing_system(a_kD: Tensor, filters_Dff: Tensor) -> Tensor:
    """Eq. 10's matrix, channel i's column being a_i (x) h_i: (k * f * f, D). With W: the filters on X's basis."""
    return (a_kD[:, None, :] * filters_Dff.flatten(1).T).flatten(0, 1)


def is_spanned(filters_Dff: Tensor, dimension: int, copies: int) -> bool:
    """Definition 1: can the filters be split into ``copies`` (k) subsets that each span the same M = ``dimension``?

    Such a split exists exactly if the columns a_i (x) h_i have rank k * M for generic a_i (the union of k linear
    matroids), so one rank with random a decides it, without a search; it is also the system of Proposition 1.
    """
    unit_Dff = F.normalize(filters_Dff.double().cpu().flatten(1)).view_as(filters_Dff)
    a_kD = torch.randn(copies, len(filters_Dff), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rank = int(torch.linalg.matrix_rank(unit_Dff.flatten(1)))
    return rank == dimension and int(torch.linalg.matrix_rank(mixing_system(a_kD, unit_Dff))) == copies * dimension


def channel_mixing(x_ND: Tensor, filters_Dff: Tensor, other_Dff: Tensor, other_DD: Tensor) -> tuple[Tensor, float]:
    """Proposition 1: the W with [H_1 x_1 ... H_D x_D] W = [H'_1 x_1 ... H'_D x_D] W', for any padding.

    With X = Z A of rank k this is linear: (a_i (x) h_i) W = (a_i (x) h'_i) W'.

    Differs: the paper promises W for every X of rank k. That holds for almost every X, not for all: where channels
    repeat a direction of A, k copies of a basis may meet the same a. Hence the second value.

    Args:
        x_ND: the input; filters_Dff: H, fixed; other_Dff: H'; other_DD: W'.

    Returns:
        The W (D, D) nearest to a solution, and its relative error: zero up to rounding if W is one.
    """
    _, sigma, v_DD = torch.linalg.svd(x_ND, full_matrices=False)
    rank = int(torch.linalg.matrix_rank(x_ND))
    a_kD = sigma[:rank, None] * v_DD[:rank]
    wanted = mixing_system(a_kD, other_Dff) @ other_DD
    system = mixing_system(a_kD, filters_Dff)
    weight_DD = torch.linalg.pinv(system) @ wanted
    return weight_DD, float((system @ weight_DD - wanted).norm() / wanted.norm())
