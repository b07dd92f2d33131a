"""Colour and geometry operations on uint8 batches, each image with its own argument, to Pillow's rounding.

``group_operations`` sorts on the host what ``policies`` drew: how many images a group has decides the shapes of what a
device computes, and so is never asked of the device. ``apply_operations`` carries the groups out, on any device: per
layer, the images that share an operation stand side by side and are done at once.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torchvision.transforms.v2.functional as TF
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment.bicubic import transform_affine
from imagesets.augment.policies import NUM_OPS, Op, Operations

_SAME_GROUP = {Op.TRANSLATE_X: Op.SHEAR_X, Op.TRANSLATE_Y: Op.SHEAR_Y}  # these two pairs each keep to one axis
_GROUP_OF = np.array([*(_SAME_GROUP.get(op, op) for op in map(Op, range(NUM_OPS))), Op.NONE])  # the last one is at -1
_GEOMETRY = (Op.ROTATE, Op.SHEAR_X, Op.TRANSLATE_X, Op.SHEAR_Y, Op.TRANSLATE_Y)


class Grouped(NamedTuple):
    """Operations as they are carried out: in each of L layers, images of the same group stand side by side.

    ``order`` is (L + 1, B) int64: where in the layer before each image of a layer stood; then likewise their own order.
    ``values`` is (L, B, 6) float64: a geometric operation's matrix, or the one number that another takes.
    ``parts`` are each layer's groups as (operation, first image, last image); those without an operation have none.
    """

    order: Tensor
    values: Tensor
    parts: tuple[tuple[tuple[Op, int, int], ...], ...]


def group_operations(operations: Operations, size: int) -> Grouped:
    """Sort what ``policies`` drew, for images with sides of ``size`` pixels."""
    group_LB = _GROUP_OF[operations.op.T]
    image_LB = np.argsort(group_LB, axis=1, kind="stable")  # which one stands at each place
    place_LB = np.argsort(image_LB, axis=1)  # where each one stands
    own = np.arange(group_LB.shape[1])
    order = [before[image] for before, image in zip([own, *place_LB], [*image_LB, own], strict=True)]
    values_LB6 = np.take_along_axis(_values(operations, size), image_LB[..., None], axis=1)
    parts = tuple(tuple(_parts(group_B)) for group_B in group_LB)
    return Grouped(torch.from_numpy(np.stack(order)), torch.from_numpy(values_LB6), parts)


def _parts(group_B: NDArray[np.int64]) -> Iterator[tuple[Op, int, int]]:
    groups, counts = np.unique(group_B, return_counts=True)
    for group, count, last in zip(groups.tolist(), counts.tolist(), counts.cumsum().tolist(), strict=True):
        if group != Op.NONE:
            yield Op(group), last - count, last


def _values(operations: Operations, size: int) -> NDArray[np.float64]:
    """(L, B, 6), in the images' own order."""
    op_LB, argument_LB = operations.op.T, operations.argument.T
    number_LB = np.where(op_LB == Op.POSTERIZE, 256 - 2 ** (8 - argument_LB), argument_LB)  # a mask for the bits kept
    values_LB6 = np.repeat(number_LB[..., None], 6, axis=-1)
    moved_LB = np.isin(op_LB, _GEOMETRY)
    pairs = zip(op_LB[moved_LB], argument_LB[moved_LB], strict=True)
    values_LB6[moved_LB] = np.array([_matrix(Op(o), float(a), size) for o, a in pairs]).reshape(-1, 6)
    return values_LB6


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


def apply_operations(images: Tensor, grouped: Grouped, fill: Tensor) -> Tensor:
    """All layers in turn on (B, 3, S, S) uint8, as new images; ``fill`` (3, 1, 1) is what geometry moves in."""
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


def _enhance(images: Tensor, factor: Tensor, _: Tensor, degenerate: Callable[[Tensor], Tensor]) -> Tensor:
    """Pillow's ImageEnhance: ``degenerate`` at factor 0, the image at 1, beyond it above; fractions are cut off."""
    weight = _column(factor, torch.float32)
    start = degenerate(images).float()
    return (images.float() - start).mul_(weight).add_(start).clamp_(0, 255).to(torch.uint8)


def _gray(images: Tensor) -> Tensor:
    """Pillow's convert("L"), (B, 1, S, S)."""
    red, green, blue = images.int().split(1, dim=1)
    weighted: Tensor = red * 19595 + green * 38470 + blue * 7471
    return (weighted + 0x8000) >> 16


def _mean_gray(images: Tensor) -> Tensor:
    return (_gray(images).double().mean(dim=(1, 2, 3), keepdim=True) + 0.5).floor_()


def _smooth(images: Tensor) -> Tensor:
    """Pillow's SMOOTH filter: 5/13 of the centre and 1/13 of each neighbour; the outermost pixels stay."""
    wide = images.short()
    lines = wide[..., :-2] + wide[..., 1:-1] + wide[..., 2:]
    total = lines[..., :-2, :] + lines[..., 1:-1, :] + lines[..., 2:, :] + 4 * wide[..., 1:-1, 1:-1]
    smooth = images.clone()
    smooth[..., 1:-1, 1:-1] = (total * (1 / 13) + 0.5).to(torch.uint8)
    return smooth


_FUNCTIONS: dict[Op, Callable[[Tensor, Tensor, Tensor], Tensor]] = {  # of a group's images, (N, 6) values and fill
    Op.AUTO_CONTRAST: lambda images, *_: TF.autocontrast(images),
    Op.EQUALIZE: lambda images, *_: TF.equalize(images),
    Op.INVERT: lambda images, *_: TF.invert(images),
    # of posterize: no bit kept is black, as in older Pillow; newer ones, and so timm, raise there
    Op.POSTERIZE: lambda images, mask, _: images & _column(mask, torch.uint8),
    Op.SOLARIZE: lambda images, limit, _: torch.where(images < _column(limit, torch.int16), images, 255 - images),
    # at most 110 are added: no overflow
    Op.SOLARIZE_ADD: lambda images, added, _: torch.where(images < 128, images + _column(added, torch.uint8), images),
    Op.COLOR: partial(_enhance, degenerate=_gray),
    Op.CONTRAST: partial(_enhance, degenerate=_mean_gray),
    Op.BRIGHTNESS: partial(_enhance, degenerate=lambda images: torch.zeros((), device=images.device)),
    Op.SHARPNESS: partial(_enhance, degenerate=_smooth),
    Op.ROTATE: partial(transform_affine, along="both"),
    Op.SHEAR_X: partial(transform_affine, along="x"),
    Op.SHEAR_Y: partial(transform_affine, along="y"),
}
