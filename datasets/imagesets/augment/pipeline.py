"""From a cropped uint8 batch to what the model sees, on the batch's device.

    flip -> RandAugment or colour jitter -> normalize -> random erasing -> mixup or cutmix

The same for every loader: parameters come from (seed, epoch, index, repeat), those of mixing from (seed, step, group).
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment import parameters, policies
from imagesets.augment.operations import apply_operations
from imagesets.augment.parameters import Mixing
from imagesets.augment.policies import Operations, RandAugment
from imagesets.catalog import RGB
from imagesets.randomness import Purpose, Samples, philox
from suite.errors import SpecError
from suite.spec import Recipe


class Augmentation:
    """Everything between a cropped uint8 batch and what the model sees, in the order of timm's create_transform.

    As there, colour jitter is done only where there is no RandAugment: DeiT's recipe lists both, its code never
    jitters. Label smoothing is left to the loss: ``F.cross_entropy(logits, targets, label_smoothing=s)`` takes these
    targets and then equals timm's ``SoftTargetCrossEntropy`` on smoothed ones.

    Args:
        recipe: gives the strengths.
        seed: the experiment's.
        mean: that images are normalized by, per channel scaled to [0, 1]; also what geometry fills in.
        std: likewise.
        num_classes: width of the mixed targets.

    Raises:
        SpecError: if the recipe's ``rand_augment`` is not understood.
    """

    def __init__(self, recipe: Recipe, seed: int, mean: RGB, std: RGB, num_classes: int) -> None:
        self.recipe = recipe
        self.seed = seed
        self.num_classes = num_classes
        self._policy = RandAugment.parse(recipe.rand_augment) if recipe.rand_augment else None
        red, green, blue = (min(255, round(255 * value)) for value in mean)
        self._fill = (red, green, blue)
        self._statistics = torch.tensor([mean, std]).reshape(2, 3, 1, 1) * 255

    def __call__(
        self,
        images: Tensor,
        labels: Tensor,
        samples: Samples,
        step: int,
        flipped: NDArray[np.bool_] | None = None,
        positions: NDArray[np.int64] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Augment one rank's share of a step; it must be the whole share where the recipe mixes.

        Args:
            images: (B, 3, S, S) uint8, cropped; left as they are.
            labels: (B,) int64, on the same device.
            samples: which samples these are.
            step: the optimizer's.
            flipped: ``parameters.flips`` of these samples, where a loader has drawn them for many steps at once.
            positions: (B,), of the samples in the batch of all ranks; None = this is all of it.

        Returns:
            Images (B, 3, S, S) float32, normalized; and the labels, or mixed one-hot targets (B, num_classes) float32
            where the recipe mixes.

        Raises:
            SpecError: if images are to be mixed in pairs and B is odd.
        """
        recipe, size = self.recipe, images.shape[-1]
        if recipe.flip_probability:
            if flipped is None:
                flipped = parameters.flips(self.seed, samples, recipe.flip_probability)
            images = flip(images, flipped)
        operations = self._draw_operations(samples)
        if operations is not None:
            images = apply_operations(images, operations, self._fill)
        normalized = self.normalize(images)
        if recipe.random_erasing:
            boxes = parameters.erasing_boxes(self.seed, samples, recipe.random_erasing, size)
            erase_(normalized, boxes, self.seed, samples)
        if not recipe.mixup and not recipe.cutmix:
            return normalized, labels
        groups = (np.arange(len(images)) if positions is None else positions) % recipe.num_mix_groups
        strengths = (recipe.mixup, recipe.cutmix, recipe.mix_switch_probability)
        return mix_(normalized, labels, parameters.mixing(self.seed, step, groups, *strengths, size), self.num_classes)

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 -> float32 less the mean and over the deviation; all that test images get."""
        mean, std = self._statistics.to(images.device, non_blocking=True)
        if images.device.type == "cpu":  # NumPy asks for huge pages: at 224 pixels, fresh memory costs most of the time
            normalized = torch.from_numpy(np.empty(images.shape, np.float32)).copy_(images)
        else:
            normalized = images.float()
        return normalized.sub_(mean).div_(std)

    def _draw_operations(self, samples: Samples) -> Operations | None:
        if self._policy is not None:
            return policies.rand_augment(self.seed, samples, self._policy)
        if self.recipe.color_jitter:
            return policies.color_jitter(self.seed, samples, self.recipe.color_jitter)
        return None


def flip(images: Tensor, flipped: NDArray[np.bool_]) -> Tensor:
    """Mirror the chosen images, left to right. Whole rows are picked: three times as fast as a mask on the CPU."""
    num = len(images)
    choice = torch.from_numpy(np.arange(num) + num * flipped).to(images.device, non_blocking=True)
    return torch.cat([images, images.flip(-1)]).index_select(0, choice)


def erase_(images: Tensor, boxes_B4: NDArray[np.int64], seed: int, samples: Samples) -> None:
    """Fill each image's box with normal noise, in place (timm's RandomErasing, mode "pixel").

    A pixel's noise depends on seed, sample and place alone, and up to rounding not on the device.
    """
    area = boxes_B4[:, 2] * boxes_B4[:, 3]
    columns = [np.arange(len(area)), *boxes_B4.T, np.cumsum(area) - area, *samples]
    per_image, repeats = (torch.from_numpy(a).to(images.device, non_blocking=True) for a in (np.stack(columns), area))
    per_pixel = per_image.repeat_interleave(repeats, dim=1, output_size=int(area.sum()))
    place, top, left, _, width, first, epoch, index, repeat = per_pixel
    offset = torch.arange(per_pixel.shape[1], device=images.device) - first
    row, column = top + offset // width, left + offset % width
    counter = (index, epoch, repeat, row * images.shape[-1] + column)
    images[place, :, row, column] = _normals(philox(counter, (seed, int(Purpose.ERASING_NOISE))))


def _normals(words: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Three normal numbers from each four words, (N, 3) float32, by Box and Muller's transform."""
    uniform = [(word.float() + 0.5) * 2.0**-32 for word in words]
    radii = [(-2 * u.log()).clamp_(min=0).sqrt_() for u in uniform[:2]]
    angles = [2 * math.pi * u for u in uniform[2:]]
    return torch.stack([radii[0] * angles[0].cos(), radii[0] * angles[0].sin(), radii[1] * angles[1].cos()], dim=1)


def mix_(images: Tensor, labels: Tensor, mixing: Mixing, num_classes: int) -> tuple[Tensor, Tensor]:
    """Mix each image with the one half a batch further, in place, and the labels' one-hot rows alike.

    Partners are so far apart that repeated copies of a sample, which are neighbours, do not meet; and the pairs do
    not depend on the number of ranks: of R ranks, rank r holds positions r, r + R, ..., so half its share is half
    the batch, and of the same group. (timm pairs the first with the last.)

    Returns:
        The images, and targets (B, num_classes) float32.

    Raises:
        SpecError: if the number of images is odd.
    """
    half, rest = divmod(len(images), 2)
    if rest:
        raise SpecError(
            f"mixup and cutmix pair the images of a rank's share, and this one has {len(images)}; "
            "choose a batch size that is a multiple of twice the number of ranks"
        )
    lam_B, own_B1SS = _own_shares(mixing, images.shape[-1], images.device)
    partners = images.roll(half, 0)
    images.mul_(own_B1SS).addcmul_(partners, 1 - own_B1SS)
    targets = F.one_hot(labels, num_classes).float()
    return images, targets * lam_B[:, None] + targets.roll(half, 0) * (1 - lam_B[:, None])


def _own_shares(mixing: Mixing, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """What an image keeps of its own: of its label (B,), and of each pixel (B, 1, S, S), 0 in cutmix's box."""
    table = np.column_stack([mixing.lam, mixing.is_cutmix, mixing.boxes]).astype(np.float32)
    lam_B, is_cutmix_B, *box = torch.from_numpy(table).to(device, non_blocking=True).unbind(1)
    top_B1, left_B1, height_B1, width_B1 = (edge[:, None] for edge in box)
    place_S = torch.arange(size, device=device)
    rows_BS = (place_S >= top_B1) & (place_S < top_B1 + height_B1)
    columns_BS = (place_S >= left_B1) & (place_S < left_B1 + width_B1)
    outside_B = torch.where(is_cutmix_B > 0, 1.0, lam_B)
    own_BSS = outside_B[:, None, None] * ~(rows_BS[:, :, None] & columns_BS[:, None])
    return lam_B, own_BSS[:, None]
