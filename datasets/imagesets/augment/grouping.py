"""Sorts a batch's drawn operations into groups that are done at once, and works out what each image's operation takes.

All of it on the host: how many images a group has decides the shapes of what a device computes, and so is never asked
of the device. ``operations`` carries the groups out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
