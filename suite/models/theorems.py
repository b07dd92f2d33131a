"""Li et al.'s Theorem 1 as code (arXiv:2111.01353): a convolution over patches as attention, and its heads.

``suite.models.cmhsa`` trains with this construction; ``tests/models/test_theorems.py`` builds whole layers by it and by
the other theorems, and compares them with the convolution.

Legend: B batch, N tokens (rows * columns of a grid, row-major), H heads, D features of an input token and O of an
output token (row in patch, column in patch, channel), K kernel side, P patch side, S stride. Offsets are key - query,
(row, column), in tokens. Convolutions are torch's: weight (D_out, D_in, K, K), K odd, padded by dilation * (K - 1) / 2.

Differs: the paper writes a head's offset now as query - key (Lemma 2), now as key - query (Appendix A.2's
X_{q + delta}); here it is key - query. It does not say what a head does whose target lies outside the image:

    borders="null_key"  one more key, of value 0, that scores what the missing target would: exact zero padding
    borders="literal"   nothing: the head then attends uniformly, exact in the interior only
"""

from typing import Literal

import torch
from torch import Tensor

from suite.base.errors import SpecError
from suite.models.layers import check_divides

Borders = Literal["null_key", "literal"]


def check_kernel_size(kernel_size: int) -> None:
    """Raise SpecError unless the kernel has a center."""
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise SpecError(f"kernel_size is {kernel_size}, expected an odd number; an even kernel has no center")


def patch_offsets(kernel_size: int, patch_size: int, dilation: int = 1) -> list[int]:
    """Eq. 5: the offsets, along one axis, of patches that hold a pixel in the receptive field of a patch's pixels.

    A tap that reaches d pixels leads from a patch to the patches floor(d / P) and ceil(d / P). For a dilation up to P
    these are all of -r to r with r = ceil(dilation * (K - 1) / 2P); beyond, the patches between two taps drop out.
    SpecError for an even kernel, or a size below 1.
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

    Returns:
        (H, P * P * D_in, (P / S)^2 * D_out); SpecError for an oblong kernel, or a stride that does not divide P.
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


def to_patches(images: Tensor, patch_size: int) -> Tensor:
    """Eq. 16: (B, channels, R * P, C * P) -> (B, N, P * P * channels), (row in patch, column in patch, channel)."""
    batch, channels, height, width = images.shape
    split = images.reshape(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return split.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, patch_size**2 * channels)


def to_images(x_BND: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
    """The inverse of ``to_patches``."""
    split = x_BND.unflatten(2, (patch_size, patch_size, -1)).unflatten(1, grid)
    return split.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)
