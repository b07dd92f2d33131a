"""Where to crop, flip, erase and mix, and how to resize, as functions of (seed, epoch, index, repeat) or of the step.

Rules are timm's, which are torchvision's for the crop; draws are counter-based, so one sample's numbers do not depend
on which others are in the batch. Loaders call the crops, ``augment.pipeline`` the rest.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from imagesets.randomness import Purpose, Samples, uniforms

_ATTEMPTS = 10  # at a box that fits, for crops and for erasing
_RATIO = (3 / 4, 4 / 3)  # of a crop's width to its height, drawn uniformly in its logarithm


def resized_crops(seed: int, samples: Samples, sizes_B2: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The window of each image that is resized to the model's input (torchvision's RandomResizedCrop.get_params).

    Boxes (B, 4) are (top, left, height, width) in images of these heights and widths: of ten attempts the first that
    fits, or else the largest central window whose shape is within ``_RATIO``.
    """
    draws = uniforms(seed, Purpose.RESIZED_CROP, samples, 4 * _ATTEMPTS).reshape(-1, _ATTEMPTS, 4)
    sizes = sizes_B2.astype(np.int64)  # of narrower ones an area could overflow
    height, width = sizes[:, :1], sizes[:, 1:]
    area = height * width * _between((0.08, 1.0), draws[..., 0])
    shape = np.exp(_between((math.log(_RATIO[0]), math.log(_RATIO[1])), draws[..., 1]))
    box_w, box_h = np.rint(np.sqrt(area * shape)), np.rint(np.sqrt(area / shape))
    top, left = np.floor(draws[..., 2] * (height - box_h + 1)), np.floor(draws[..., 3] * (width - box_w + 1))
    fits = (box_w > 0) & (box_w <= width) & (box_h > 0) & (box_h <= height)
    most_h = np.minimum(height, np.rint(width / _RATIO[0]).astype(np.int64))
    most_w = np.minimum(width, np.rint(height * _RATIO[1]).astype(np.int64))
    central = np.concatenate([(height - most_h) // 2, (width - most_w) // 2, most_h, most_w], axis=1)
    return _first_that_fits(np.stack([top, left, box_h, box_w], axis=-1), fits, central)


def resized_bilinearly(seed: int, samples: Samples) -> NDArray[np.bool_]:
    """(B,): which crops are resized bilinearly, half of them; the others bicubically (timm's "random")."""
    return uniforms(seed, Purpose.INTERPOLATION, samples, 1)[:, 0] < 0.5


def padded_crops(seed: int, samples: Samples, spare: int) -> NDArray[np.int64]:
    """(B, 2) corners (top, left) of a window in an image that is ``spare`` pixels larger: each in 0..spare."""
    return (uniforms(seed, Purpose.CROP, samples, 2) * (spare + 1)).astype(np.int64)


def flips(seed: int, samples: Samples, probability: float) -> NDArray[np.bool_]:
    """(B,): which images are mirrored, left to right."""
    return uniforms(seed, Purpose.FLIP, samples, 1)[:, 0] < probability


def erasing_boxes(seed: int, samples: Samples, probability: float, size: int) -> NDArray[np.int64]:
    """The box of each image that becomes noise (timm's RandomErasing, one box of 0.02 to 1/3 of the image's area).

    Args:
        seed, samples: the two halves of the generator's counter.
        probability: probability that an image is erased at all; else its box is 0 x 0.
        size: side of the square images, pixels.
    """
    draws = uniforms(seed, Purpose.ERASING, samples, 4 + 4 * _ATTEMPTS)
    erased, draws = draws[:, 0] < probability, draws[:, 4:].reshape(-1, _ATTEMPTS, 4)
    area = size**2 * _between((0.02, 1 / 3), draws[..., 0])
    shape = np.exp(_between((math.log(0.3), math.log(1 / 0.3)), draws[..., 1]))
    box_h, box_w = np.rint(np.sqrt(area * shape)), np.rint(np.sqrt(area / shape))
    top, left = np.floor(draws[..., 2] * (size - box_h + 1)), np.floor(draws[..., 3] * (size - box_w + 1))
    fits = (box_w < size) & (box_h < size) & erased[:, None]
    nowhere = np.zeros((len(draws), 4), dtype=np.int64)
    return _first_that_fits(np.stack([top, left, box_h, box_w], axis=-1), fits, nowhere)


class Mixing(NamedTuple):
    """How each image is mixed with its partner: cutmix takes the box from there, mixup all of it in part."""

    is_cutmix: NDArray[np.bool_]  # (B,)
    lam: NDArray[np.float64]  # (B,), an image's own share
    boxes: NDArray[np.int64]  # (B, 4): top, left, height, width; 0 x 0 for mixup


def mixing(
    seed: int,
    step: int | NDArray[np.int64],
    groups: NDArray[np.int64],
    mixup: float,
    cutmix: float,
    switch_probability: float,
    size: int,
) -> Mixing:
    """The mixing of steps: one draw a step's group, the same on all ranks (timm's Mixup, mode "batch", probability 1).

    Args:
        step: the optimizer's step, or (B,), that of each image.
        groups: (B,), the group in its step that each image belongs to; timm's is a process.
        mixup, cutmix: alpha of the Beta(alpha, alpha) that each one's ``lam`` comes from; 0 turns it off, but not both.
        switch_probability, size: probability of cutmix, where both are on; and side of the square images, pixels.
    """
    num_groups = groups.max() + 1
    drawn, group_of_image = np.unique(step * num_groups + groups, return_inverse=True)
    counters = Samples(np.zeros_like(drawn), *np.divmod(drawn, num_groups))
    switch, share, row, column = uniforms(seed, Purpose.MIXING, counters).T
    is_cutmix = switch < (switch_probability if mixup and cutmix else float(cutmix > 0))
    alpha = np.where(is_cutmix, cutmix, mixup)
    lam = betaincinv(alpha, alpha, share)
    cut = np.where(is_cutmix, size * np.sqrt(1 - lam), 0).astype(np.int64)
    middles, cut = (size * np.stack([row, column], 1)).astype(np.int64), cut[:, None]
    corners = np.maximum(middles - cut // 2, 0)
    sides = np.minimum(middles + (cut + 1) // 2, size) - corners
    lam = np.where(is_cutmix, 1 - sides.prod(axis=1) / size**2, lam)
    boxes = np.concatenate([corners, sides], axis=1)
    return Mixing(*(field[group_of_image] for field in (is_cutmix, lam, boxes)))


def _between(limits: tuple[float, float], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    return limits[0] + (limits[1] - limits[0]) * uniform


def _first_that_fits(
    boxes_BA4: NDArray[np.float64], fits_BA: NDArray[np.bool_], otherwise_B4: NDArray[np.int64]
) -> NDArray[np.int64]:
    first = boxes_BA4[np.arange(len(boxes_BA4)), fits_BA.argmax(axis=1)]
    return np.where(fits_BA.any(axis=1, keepdims=True), first, otherwise_B4).astype(np.int64)
