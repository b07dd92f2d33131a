"""Affine maps of a batch of uint8 images by Pillow's rule: its bicubic filter, its borders, its rounding.

``F.grid_sample`` has another filter (a = -0.75, Pillow's transform a = -1), and its borders fade; so the neighbours
are gathered here. Used by ``operations`` for rotation, shear and translation.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_SAME_ROW, _SAME_COLUMN = (0, 1, 0), (1, 0, 0)


def transform_affine(images: Tensor, matrices: NDArray[np.float64], fill: tuple[int, int, int]) -> Tensor:
    """Pillow's ``image.transform(size, AFFINE, matrix, BICUBIC, fillcolor=fill)`` for each image.

    Maps along one axis need a quarter of the work, if no other kind is in the batch.

    Args:
        images: (N, 3, H, W) uint8.
        matrices: (N, 6), each (a, b, c, d, e, f): the point (x, y) shows what was at (ax + by + c, dx + ey + f);
            pixel centres are at halves.
        fill: RGB of points that come from outside.

    Returns:
        (N, 3, H, W) uint8.
    """
    height, width = images.shape[2:]
    y = torch.arange(height, dtype=torch.float64, device=images.device)[:, None] + 0.5
    x = torch.arange(width, dtype=torch.float64, device=images.device) + 0.5
    on_device = torch.from_numpy(matrices).to(images.device, non_blocking=True)
    a, b, c, d, e, f = on_device[:, :, None, None].unbind(1)
    from_x, from_y = a * x + b * y + c, d * x + e * y + f
    columns = _neighbours(from_x, width, whole=bool((matrices[:, :3] == _SAME_COLUMN).all()))
    rows = _neighbours(from_y, height, whole=bool((matrices[:, 3:] == _SAME_ROW).all()))
    flat = images.flatten(2)
    result = torch.zeros(images.shape, device=images.device)
    for row, row_weight in rows:
        line = torch.zeros_like(result)
        for column, column_weight in columns:
            place = (row * width + column).flatten(1)[:, None].expand_as(flat)
            line.addcmul_(flat.gather(2, place).view_as(images).float(), column_weight[:, None])
        result.addcmul_(line, row_weight[:, None])
    # Pillow cuts fractions off; the added hair keeps exact values whole under float32's rounding
    values = result.add_(1e-3).clamp_(0, 255).to(torch.uint8)
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    color = torch.tensor(fill, dtype=torch.uint8).to(images.device, non_blocking=True)
    return torch.where(inside[:, None], values, color[:, None, None])


def _neighbours(position: Tensor, size: int, whole: bool) -> list[tuple[Tensor, Tensor]]:
    """The four pixels around a position, kept inside 0..size-1, and their weights (Keys' cubic, a = -1).

    ``whole`` says that positions are pixel centres, which take the value of that pixel alone.
    """
    position = position - 0.5
    first = position.floor()
    t = (position - first).float()
    if whole:
        return [(first.long(), torch.ones_like(t))]
    weights = [-t * (1 - t) ** 2, 1 + t * t * (t - 2), t * (1 + t * (1 - t)), t * t * (t - 1)]
    return [((first.long() + k).clamp_(0, size - 1), weight) for k, weight in zip((-1, 0, 1, 2), weights, strict=True)]
