"""Colour and geometry operations on uint8 batches, each image with its own argument, to Pillow's rounding.

``apply_operations`` carries out what ``policies`` drew: per layer, the images that share an operation are done at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torchvision.transforms.v2.functional as TF
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment.bicubic import transform_affine
from imagesets.augment.policies import Op, Operations

Fill = tuple[int, int, int]


def apply_operations(images: Tensor, operations: Operations, fill: Fill) -> Tensor:
    """All layers in turn, as new images.

    Args:
        images: (B, 3, S, S) uint8.
        operations: of B samples.
        fill: RGB of what geometry moves in from outside.
    """
    images = images.clone()
    for op, argument in zip(operations.op.T, operations.argument.T, strict=True):
        for group, function in _GROUPS:
            place = np.flatnonzero(np.isin(op, group))
            if len(place):
                chosen = torch.from_numpy(place).to(images.device, non_blocking=True)
                changed = function(images.index_select(0, chosen), op[place], argument[place], fill)
                images.index_copy_(0, chosen, changed)
    return images


def _column(images: Tensor, values: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """One value per image, (B, 1, 1, 1), beside the images."""
    return torch.from_numpy(values).to(dtype).reshape(-1, 1, 1, 1).to(images.device, non_blocking=True)


def _blend(images: Tensor, degenerate: Tensor, factor: NDArray[np.float64]) -> Tensor:
    """Pillow's ImageEnhance: ``degenerate`` at factor 0, the image at 1, beyond it above; fractions are cut off."""
    weight = _column(images, factor, torch.float32)
    start = degenerate.float()
    return (images.float() - start).mul_(weight).add_(start).clamp_(0, 255).to(torch.uint8)


def _gray(images: Tensor) -> Tensor:
    """Pillow's convert("L"), (B, 1, S, S)."""
    red, green, blue = images.int().split(1, dim=1)
    weighted: Tensor = red * 19595 + green * 38470 + blue * 7471
    return (weighted + 0x8000) >> 16


def _smooth(images: Tensor) -> Tensor:
    """Pillow's SMOOTH filter: 5/13 of the centre and 1/13 of each neighbour; the outermost pixels stay."""
    wide = images.short()
    lines = wide[..., :-2] + wide[..., 1:-1] + wide[..., 2:]
    total = lines[..., :-2, :] + lines[..., 1:-1, :] + lines[..., 2:, :] + 4 * wide[..., 1:-1, 1:-1]
    smooth = images.clone()
    smooth[..., 1:-1, 1:-1] = (total * (1 / 13) + 0.5).to(torch.uint8)
    return smooth


def _color(images: Tensor, _: NDArray[np.int64], factor: NDArray[np.float64], __: Fill) -> Tensor:
    return _blend(images, _gray(images), factor)


def _contrast(images: Tensor, _: NDArray[np.int64], factor: NDArray[np.float64], __: Fill) -> Tensor:
    mean = _gray(images).double().mean(dim=(1, 2, 3), keepdim=True)
    return _blend(images, (mean + 0.5).floor_(), factor)


def _brightness(images: Tensor, _: NDArray[np.int64], factor: NDArray[np.float64], __: Fill) -> Tensor:
    return _blend(images, torch.zeros((), device=images.device), factor)


def _sharpness(images: Tensor, _: NDArray[np.int64], factor: NDArray[np.float64], __: Fill) -> Tensor:
    return _blend(images, _smooth(images), factor)


def _posterize(images: Tensor, _: NDArray[np.int64], bits: NDArray[np.float64], __: Fill) -> Tensor:
    """Keep the highest ``bits`` bits. None kept is black, as in older Pillow; newer ones, and so timm, raise there."""
    return images & _column(images, 256 - 2 ** (8 - bits), torch.uint8)


def _solarize(images: Tensor, _: NDArray[np.int64], threshold: NDArray[np.float64], __: Fill) -> Tensor:
    return torch.where(images < _column(images, threshold, torch.int16), images, 255 - images)


def _solarize_add(images: Tensor, _: NDArray[np.int64], added: NDArray[np.float64], __: Fill) -> Tensor:
    return torch.where(images < 128, images + _column(images, added, torch.uint8), images)  # added <= 110: no overflow


def _geometry(images: Tensor, op: NDArray[np.int64], argument: NDArray[np.float64], fill: Fill) -> Tensor:
    size = images.shape[-1]
    matrices = [_matrix(Op(o), float(a), size) for o, a in zip(op, argument, strict=True)]
    return transform_affine(images, np.array(matrices, dtype=np.float64), fill)


def _matrix(op: Op, argument: float, size: int) -> tuple[float, ...]:
    """timm's and Pillow's map from a new point to where it was, as ``transform_affine`` takes it."""
    if op == Op.SHEAR_X:
        return 1, argument, 0, 0, 1, 0
    if op == Op.SHEAR_Y:
        return 1, 0, 0, argument, 1, 0
    if op == Op.TRANSLATE_X:
        return 1, 0, argument * size, 0, 1, 0
    if op == Op.TRANSLATE_Y:
        return 1, 0, 0, 0, 1, argument * size
    angle, center = -math.radians(argument), size / 2  # counter-clockwise about the centre
    cos, sin = math.cos(angle), math.sin(angle)
    return cos, sin, center - (cos + sin) * center, -sin, cos, center - (cos - sin) * center


Function = Callable[[Tensor, NDArray[np.int64], NDArray[np.float64], Fill], Tensor]

_GROUPS: Sequence[tuple[tuple[Op, ...], Function]] = (
    ((Op.AUTO_CONTRAST,), lambda images, *_: TF.autocontrast(images)),
    ((Op.EQUALIZE,), lambda images, *_: TF.equalize(images)),
    ((Op.INVERT,), lambda images, *_: TF.invert(images)),
    ((Op.POSTERIZE,), _posterize),
    ((Op.SOLARIZE,), _solarize),
    ((Op.SOLARIZE_ADD,), _solarize_add),
    ((Op.COLOR,), _color),
    ((Op.CONTRAST,), _contrast),
    ((Op.BRIGHTNESS,), _brightness),
    ((Op.SHARPNESS,), _sharpness),
    ((Op.ROTATE,), _geometry),
    ((Op.SHEAR_X, Op.TRANSLATE_X), _geometry),  # these two pairs each keep to one axis
    ((Op.SHEAR_Y, Op.TRANSLATE_Y), _geometry),
)
