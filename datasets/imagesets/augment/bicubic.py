"""Affine maps of a batch of uint8 images by Pillow's rule: its bicubic filter, its borders, its rounding.

``F.grid_sample`` has another filter (a = -0.75, Pillow's transform a = -1), and its borders fade; so the neighbours
are gathered here. Used by ``operations`` for rotation, shear and translation.
"""

from typing import Literal

import torch
from torch import Tensor

_NEIGHBOURS_AT_ONCE = {"cpu": 1}  # of each axis; all four are few kernels, but many times the memory


def transform_affine(images: Tensor, matrices: Tensor, fill: Tensor, along: Literal["x", "y", "both"]) -> Tensor:
    """Pillow's ``image.transform(size, AFFINE, matrix, BICUBIC, fillcolor=fill)`` for each image.

    Args:
        images: (N, 3, H, W) uint8, as the result.
        matrices: (N, 6) float64, each (a, b, c, d, e, f): the point (x, y) shows what was at
            (ax + by + c, dx + ey + f); pixel centres are at halves.
        fill: (3, 1, 1) uint8, RGB of points that come from outside.
        along: the axis along which all maps move points: one axis needs a quarter of the work of both.
    """
    height, width = images.shape[2:]
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None] + 0.5
    x = torch.arange(width, dtype=torch.float64, device=images.device) + 0.5
    a, b, c, d, e, f = matrices[:, :, None, None].unbind(1)
    from_x, from_y = a * x + b * y + c, d * x + e * y + f
    rows, columns = _neighbours(from_y, height, whole=along == "x"), _neighbours(from_x, width, whole=along == "y")
    result = _interpolate(images, rows, columns)
    # Pillow cuts fractions off; the added hair keeps exact values whole under float32's rounding
    values = result.add_(1e-3).clamp_(0, 255).to(torch.uint8)
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    return torch.where(inside[:, None], values, fill)


def _interpolate(images: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    """The weighted sum of the pixels where these rows and columns meet, (N, 3, H, W) float32."""
    num, _, height, width = images.shape
    flat, step = images.flatten(2), _NEIGHBOURS_AT_ONCE.get(images.device.type, 4)
    result = torch.zeros(images.shape, device=images.device)
    for row_NRHW, row_weights in zip(*(part.split(step, dim=1) for part in rows), strict=True):
        lines = result.new_zeros((num, 3, row_weights.shape[1], height, width))
        for column_NCHW, column_weights in zip(*(part.split(step, dim=1) for part in columns), strict=True):
            place_NRCHW = row_NRHW[:, :, None] * width + column_NCHW[:, None]
            index = place_NRCHW.flatten(1)[:, None].expand(-1, 3, -1)
            found = flat.gather(2, index).unflatten(2, place_NRCHW.shape[1:]).float()
            for neighbour, weight in enumerate(column_weights.unbind(1)):
                lines.addcmul_(found[:, :, :, neighbour], weight[:, None, None])
        for neighbour, weight in enumerate(row_weights.unbind(1)):
            result.addcmul_(lines[:, :, neighbour], weight[:, None])
    return result


def _neighbours(position: Tensor, size: int, whole: bool) -> tuple[Tensor, Tensor]:
    """The K pixels around positions (N, H, W), kept inside 0..size-1, and their weights (Keys' cubic, a = -1). K is 4;
    of ``whole`` positions, which are pixel centres, it is 1."""
    position = position - 0.5
    first = position.floor()
    t = (position - first).float()
    if whole:
        return first.long()[:, None], torch.ones_like(t)[:, None]
    offset = torch.arange(-1, 3, device=position.device)[:, None, None]
    weights = [-t * (1 - t) ** 2, 1 + t * t * (t - 2), t * (1 + t * (1 - t)), t * t * (t - 1)]
    return (first.long()[:, None] + offset).clamp_(0, size - 1), torch.stack(weights, dim=1)
