"""From a cropped uint8 batch to what the model sees, on the batch's device.

    flip -> RandAugment or colour jitter -> normalize -> random erasing -> mixup or cutmix

Parameters come from (seed, epoch, index, repeat), those of mixing from (seed, step, group). ``Augmentation.draw`` gives
all that is random as a few tensors: work for the host's threads ahead. They travel with the images, and calling the
augmentation computes on their device, without asking it for anything.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment import parameters, policies
from imagesets.augment.mixing import Boxes, Pairs, arrange_boxes, erase_, mix_, pair_images
from imagesets.augment.operations import Grouped, apply_operations, group_operations
from imagesets.augment.policies import RandAugment
from imagesets.buffer_pool import BufferPool
from imagesets.catalog import RGB
from imagesets.randomness import Samples
from suite.spec.recipe import Recipe

_NUMBERS_AT_ONCE = 1 << 17  # an image of 224 pixels, or 42 of CIFAR


class Draws(NamedTuple):
    """All that is random about one rank's share of steps; None is not done. ``turned`` is (B,) int64: places among the
    images and, after them, their mirror images."""

    turned: Tensor | None = None
    operations: Grouped | None = None
    boxes: Boxes | None = None
    pairs: Pairs | None = None


class Augmentation:
    """Everything between a cropped uint8 batch and what the model sees, in the order of timm's create_transform.

    As there, colour jitter is done only where there is no RandAugment: DeiT's recipe lists both, its code never
    jitters. Label smoothing is left to the loss: ``F.cross_entropy(logits, targets, label_smoothing=s)`` takes these
    targets and then equals timm's ``SoftTargetCrossEntropy`` on smoothed ones.

    Images are normalized by ``mean`` and ``std``, per channel scaled to [0, 1]; geometry fills in the mean. Mixed
    targets have ``num_classes`` columns. SpecError if the recipe's ``rand_augment`` is not understood.
    """

    def __init__(self, recipe: Recipe, seed: int, mean: RGB, std: RGB, num_classes: int) -> None:
        self.recipe, self.seed, self.num_classes = recipe, seed, num_classes
        self._policy = RandAugment.parse(recipe.rand_augment) if recipe.rand_augment else None
        red, green, blue = (min(255, round(255 * value)) for value in mean)
        fill = torch.tensor([red, green, blue], dtype=torch.uint8).reshape(3, 1, 1)
        statistics = torch.tensor([mean, std]).reshape(2, 3, 1, 1) * 255
        self._constants = cache(lambda device: (fill.to(device), statistics.to(device)))  # copied to a device once
        self._buffers = BufferPool()

    def draw(
        self,
        samples: Samples,
        steps: range,
        size: int,
        flipped: NDArray[np.bool_] | None = None,
        positions: NDArray[np.int64] | None = None,
    ) -> Draws:
        """Draw all that is random about one rank's share of steps, which must be whole where the recipe mixes.

        Args:
            samples: the share's samples, B of them, those of one step after the other's.
            steps: the optimizer's steps.
            size: side of the cropped images, pixels.
            flipped: ``parameters.flips`` of these samples, where a loader has drawn them for many steps at once.
            positions: (B,), of the samples in their step's batch of all ranks; None = one step, and its whole batch.
        """
        recipe, seed, num = self.recipe, self.seed, len(samples.index)
        turned = boxes = pairs = None
        if recipe.flip_probability:
            flipped = parameters.flips(seed, samples, recipe.flip_probability) if flipped is None else flipped
            turned = torch.from_numpy(np.arange(num) + num * flipped)
        operations = None
        if self._policy is not None:
            operations = policies.rand_augment(seed, samples, self._policy)
        elif recipe.color_jitter:
            operations = policies.color_jitter(seed, samples, recipe.color_jitter)
        if recipe.random_erasing:
            boxes = arrange_boxes(parameters.erasing_boxes(seed, samples, recipe.random_erasing, size), samples)
        if recipe.mixup or recipe.cutmix:
            groups = (np.arange(num) if positions is None else positions) % recipe.num_mix_groups
            strengths = (recipe.mixup, recipe.cutmix, recipe.mix_switch_probability)
            step = np.repeat(steps, num // len(steps))
            pairs = pair_images(parameters.mixing(seed, step, groups, *strengths, size), len(steps))
        return Draws(turned, group_operations(operations, size) if operations is not None else None, boxes, pairs)

    def __call__(self, images: Tensor, labels: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Augment one rank's share of steps as it was drawn, with all tensors on one device.

        The cropped images (B, 3, S, S) uint8, in any layout, are left as they are. Returned are normalized ones in
        float32, and the labels (B,), or mixed one-hot targets (B, num_classes) float32 where the recipe mixes.
        """
        turned = draws.turned
        if draws.operations is not None:
            fill, _ = self._constants(images.device)
            images = apply_operations(mirror_images(images, turned), draws.operations, fill)
            turned = None
        normalized = self.normalize(images, turned)
        if draws.boxes is not None:
            erase_(normalized, draws.boxes, self.seed)
        if draws.pairs is None:
            return normalized, labels
        return mix_(normalized, labels, draws.pairs, self.num_classes)

    def normalize(self, images: Tensor, turned: Tensor | None = None) -> Tensor:
        """(B, 3, S, S) uint8 of any layout -> float32, mirrored by ``turned`` of ``Draws``, less the mean, over the
        deviation. On the CPU a part of a batch is done at a time, so that what is in between stays in its cache."""
        mean, std = self._constants(images.device)[1]
        if images.device.type != "cpu":
            return mirror_images(images, turned).float().sub_(mean).div_(std)
        normalized = self._buffers.take(images.shape, torch.float32)
        step = max(1, _NUMBERS_AT_ONCE // max(1, images[:1].numel()))
        for first in range(0, len(images), step):
            pixels = images[first : first + step]
            mirrored = None if turned is None else turned[first : first + step] >= len(images)
            if mirrored is not None and mirrored.all():
                pixels = pixels.flip(-1)
            elif mirrored is not None and mirrored.any():
                pixels = mirror_images(pixels, torch.arange(len(pixels)) + len(pixels) * mirrored)
            normalized[first : first + step].copy_(pixels).sub_(mean).div_(std)
        return normalized


def mirror_images(images: Tensor, turned: Tensor | None) -> Tensor:
    """Pick from the images (B, 3, S, S) and, after them, their mirror images, by places (B,); None picks the images."""
    images = images.contiguous()
    if turned is None:
        return images
    return torch.cat([images, images.flip(-1)]).index_select(0, turned)  # three times as fast as a mask on the CPU
