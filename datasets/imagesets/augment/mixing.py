"""Random erasing, mixup and cutmix.

``arrange_boxes`` and ``pair_images`` say on the host what is erased, by normal noise (timm's RandomErasing, mode
"pixel"), and how images are mixed; ``erase_`` and ``mix_`` do it on any device.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment.parameters import Mixing
from imagesets.randomness import Purpose, Samples, philox
from suite.base.errors import SpecError


class Boxes(NamedTuple):
    """The boxes of B images, and from which counters their noise is drawn.

    ``per_image`` is (9, B) int64: image, top, left, height, width, erased pixels of the images before; epoch, index,
    repeat. ``areas`` is (B,) int64, pixels, and ``num_pixels`` their sum, which so need not be asked of the device.
    """

    per_image: Tensor
    areas: Tensor
    num_pixels: int


def arrange_boxes(boxes_B4: NDArray[np.int64], samples: Samples) -> Boxes:
    """Lay (B, 4) boxes (top, left, height, width) of these samples out as ``erase_`` needs them."""
    area = boxes_B4[:, 2] * boxes_B4[:, 3]
    columns = [np.arange(len(area)), *boxes_B4.T, np.cumsum(area) - area, *samples]
    return Boxes(torch.from_numpy(np.stack(columns)), torch.from_numpy(area), int(area.sum()))


def erase_(images: Tensor, boxes: Boxes, seed: int) -> None:
    """Fill each image's box with normal noise, in place. A pixel's noise depends on seed, sample and place alone, and
    up to rounding not on the device."""
    per_pixel = boxes.per_image.repeat_interleave(boxes.areas, dim=1, output_size=boxes.num_pixels)
    place, top, left, _, width, first, epoch, index, repeat = per_pixel
    offset = torch.arange(boxes.num_pixels, device=images.device) - first
    row, column = top + offset // width, left + offset % width
    counter = (index, epoch, repeat, row * images.shape[-1] + column)
    images[place, :, row, column] = _normals(philox(counter, (seed, int(Purpose.ERASING_NOISE))))


def _normals(words: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Three normal numbers from each four words, (N, 3) float32, by Box and Muller's transform."""
    uniform = [(word.float() + 0.5) * 2.0**-32 for word in words]
    radii = [(-2 * u.log()).clamp_(min=0).sqrt_() for u in uniform[:2]]
    angles = [2 * math.pi * u for u in uniform[2:]]
    return torch.stack([radii[0] * angles[0].cos(), radii[0] * angles[0].sin(), radii[1] * angles[1].cos()], dim=1)


class Pairs(NamedTuple):
    """How each of B images is mixed with another one, its partner.

    ``partner`` is (B,) int64. ``shares`` is (2, B) float32, an image's own share of its target and its partner's;
    ``blend`` the same for its pixels, or None where no image is mixed by mixup. ``box`` is (B, 4) int64, (top, left,
    height, width) of what cutmix takes from the partner, or None where it takes nothing from any.
    """

    partner: Tensor
    shares: Tensor
    blend: Tensor | None
    box: Tensor | None


def pair_images(mixing: Mixing, num_steps: int = 1) -> Pairs:
    """Give each image the one half a batch further as its partner, in batches of several steps after each other.

    Repeated copies of a sample, which are neighbours, so do not meet, and pairs do not depend on the number of ranks:
    of R ranks, rank r holds positions r, r + R, ..., so half its share is half the batch, and of the same group. (timm
    pairs the first with the last.) SpecError if the number of images is odd.
    """
    num = len(mixing.lam) // num_steps
    if num % 2:
        raise SpecError(
            f"mixup and cutmix pair the images of a rank's share, and this one has {num}; "
            "choose a batch size that is a multiple of twice the number of ranks"
        )
    kept = np.where(mixing.is_cutmix, 1.0, mixing.lam)  # of the pixels outside the box
    return Pairs(
        torch.arange(num * num_steps).reshape(num_steps, num).roll(num // 2, dims=1).reshape(-1),
        _shares(mixing.lam),
        None if mixing.is_cutmix.all() else _shares(kept),
        torch.from_numpy(mixing.boxes) if mixing.is_cutmix.any() else None,
    )


def _shares(own_B: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.stack([own_B, 1 - own_B]).astype(np.float32))


def mix_(images: Tensor, labels: Tensor, pairs: Pairs, num_classes: int) -> tuple[Tensor, Tensor]:
    """Mix each image with its partner, in place, and the labels' one-hot rows alike.

    Args:
        images, labels: (B, 3, S, S) float32, and (B,).
        pairs: partners, and how each image is mixed with its own.
        num_classes: width of the targets, which are (B, num_classes) float32.
    """
    partners = images.index_select(0, pairs.partner)
    if pairs.blend is not None:
        own, others = pairs.blend[:, :, None, None, None]
        images.mul_(own).addcmul_(partners, others)
    if pairs.box is not None:
        place = torch.arange(images.shape[-1], device=images.device)
        first_B2, sides_B2 = pairs.box.split(2, dim=1)
        offset_B2S = place - first_B2[..., None]
        rows_BS, columns_BS = ((offset_B2S >= 0) & (offset_B2S < sides_B2[..., None])).unbind(1)
        inside_B1SS = rows_BS[:, None, :, None] & columns_BS[:, None, None, :]
        torch.where(inside_B1SS, partners, images, out=images)
    one_hot = (labels[:, None] == torch.arange(num_classes, device=labels.device)).float()
    own, others = pairs.shares[:, :, None]
    return images, one_hot * own + one_hot.index_select(0, pairs.partner) * others
