"""Colour and geometry operations on uint8 batches, each image with its own argument, to Pillow's rounding.

``apply_operations`` carries out what ``policies`` drew and ``grouping`` sorted: per layer, the images that share an
operation stand side by side and are done at once, on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torchvision.transforms.v2.functional as TF
from torch import Tensor

from imagesets.augment.bicubic import transform_affine
from imagesets.augment.grouping import Grouped
from imagesets.augment.policies import Op


def apply_operations(images: Tensor, grouped: Grouped, fill: Tensor) -> Tensor:
    """All layers in turn, as new images.

    Args:
        images: (B, 3, S, S) uint8.
        grouped: operations of B samples, their tensors on the same device.
        fill: (3, 1, 1) uint8, RGB of what geometry moves in from outside.
    """
    *orders, last_order = grouped.order
    for order, values, parts in zip(orders, grouped.values, grouped.parts, strict=True):
        images = images.index_select(0, order)
        for op, first, last in parts:
            chosen = images[first:last]
            chosen.copy_(_FUNCTIONS[op](chosen, values[first:last], fill))
    return images.index_select(0, last_order)


def _column(values: Tensor, dtype: torch.dtype) -> Tensor:
    """One number per image, (N, 1, 1, 1), beside the images."""
    return values[:, :1, None, None].to(dtype)


def _blend(images: Tensor, degenerate: Tensor, factor: Tensor) -> Tensor:
    """Pillow's ImageEnhance: ``degenerate`` at factor 0, the image at 1, beyond it above; fractions are cut off."""
    weight = _column(factor, torch.float32)
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


def _color(images: Tensor, factor: Tensor, _: Tensor) -> Tensor:
    return _blend(images, _gray(images), factor)


def _contrast(images: Tensor, factor: Tensor, _: Tensor) -> Tensor:
    mean = _gray(images).double().mean(dim=(1, 2, 3), keepdim=True)
    return _blend(images, (mean + 0.5).floor_(), factor)


def _brightness(images: Tensor, factor: Tensor, _: Tensor) -> Tensor:
    return _blend(images, torch.zeros((), device=images.device), factor)


def _sharpness(images: Tensor, factor: Tensor, _: Tensor) -> Tensor:
    return _blend(images, _smooth(images), factor)


def _posterize(images: Tensor, mask: Tensor, _: Tensor) -> Tensor:
    """Keep the highest bits. None kept is black, as in older Pillow; newer ones, and so timm, raise there."""
    return images & _column(mask, torch.uint8)


def _solarize(images: Tensor, threshold: Tensor, _: Tensor) -> Tensor:
    return torch.where(images < _column(threshold, torch.int16), images, 255 - images)


def _solarize_add(images: Tensor, added: Tensor, _: Tensor) -> Tensor:
    return torch.where(images < 128, images + _column(added, torch.uint8), images)  # added <= 110: no overflow


Function = Callable[[Tensor, Tensor, Tensor], Tensor]  # of images, (N, 6) values and fill

_FUNCTIONS: dict[Op, Function] = {  # by the first operation of a group
    Op.AUTO_CONTRAST: lambda images, *_: TF.autocontrast(images),
    Op.EQUALIZE: lambda images, *_: TF.equalize(images),
    Op.INVERT: lambda images, *_: TF.invert(images),
    Op.POSTERIZE: _posterize,
    Op.SOLARIZE: _solarize,
    Op.SOLARIZE_ADD: _solarize_add,
    Op.COLOR: _color,
    Op.CONTRAST: _contrast,
    Op.BRIGHTNESS: _brightness,
    Op.SHARPNESS: _sharpness,
    Op.ROTATE: partial(transform_affine, along="both"),
    Op.SHEAR_X: partial(transform_affine, along="x"),
    Op.SHEAR_Y: partial(transform_affine, along="y"),
}
