"""Random erasing: fills a box of an image with normal noise (timm's RandomErasing, mode "pixel").

``arrange_boxes`` says on the host what is erased, ``erase_`` does it on any device.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from imagesets.randomness import Purpose, Samples, philox


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
