"""The memory loader: a whole image set as uint8, batches cropped and flipped at once.

The training stream is one endless sequence, epoch after epoch, cut into batches: step t takes positions
[t * B, (t + 1) * B), so every sample is seen equally often also where B does not divide the set.
Rank r of R takes every R-th of them, starting at r.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from imagesets.catalog import ImageSetInfo, get_info
from imagesets.fetch import ensure
from imagesets.fractions import fraction_indices
from imagesets.randomness import Purpose, epoch_order, uniforms
from imagesets.storage import open_arrays
from suite.errors import SpecError
from suite.spec import Experiment, Recipe

_NOT_YET = {  # parts of a recipe that need the augmentation pipeline of the other loaders
    "rand_augment": "",
    "color_jitter": 0.0,
    "random_erasing": 0.0,
    "mixup": 0.0,
    "cutmix": 0.0,
    "repeated_augmentation": 1,
}


class MemoryImages:
    """An experiment's training and test images in memory.

    Args:
        experiment: gives data set, fraction, seed, augmentation and batch size.
        data_dir: where image sets are stored; None = the default.

    Raises:
        SpecError: if the recipe asks for an augmentation this loader does not have, or for another image size.
        DataError: if the data are missing or broken, or the fraction leaves a class empty.
    """

    def __init__(self, experiment: Experiment, data_dir: Path | None = None) -> None:
        self.info = get_info(experiment.dataset)
        self.recipe = experiment.recipe
        self.seed = experiment.seed
        _check_supported(self.recipe, experiment.image_size, self.info)
        arrays = open_arrays(ensure(experiment.dataset, data_dir))
        kept = fraction_indices(arrays["train_labels"], experiment.train_fraction, self.info.num_classes)
        padding = self.recipe.crop_padding if self.recipe.crop == "pad" else 0
        images = torch.from_numpy(arrays["train_images"][kept]).permute(0, 3, 1, 2)
        self._train_images = F.pad(images, (padding,) * 4).contiguous()
        self._train_labels = torch.from_numpy(arrays["train_labels"][kept])
        self._test_images = arrays["test_images"]
        self._test_labels = arrays["test_labels"]
        self._order = lru_cache(maxsize=2)(self._epoch_order)
        self._mean = torch.tensor(self.info.mean).reshape(3, 1, 1) * 255
        self._std = torch.tensor(self.info.std).reshape(3, 1, 1) * 255

    @property
    def num_train(self) -> int:
        return len(self._train_labels)

    @property
    def num_test(self) -> int:
        return len(self._test_labels)

    @property
    def num_steps(self) -> int:
        """Batches in the whole training: floor(epochs * images / batch), at least one."""
        return max(1, int(self.recipe.epochs * self.num_train / self.recipe.batch_size + 1e-6))

    def positions(self, step: int, rank: int = 0, num_ranks: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(epoch, sample index) of each sample of this rank's share of a step."""
        batch = self.recipe.batch_size
        place = np.arange(step * batch + rank, (step + 1) * batch, num_ranks)
        epoch, offset = np.divmod(place, self.num_train)
        index = np.empty_like(place)
        for e in np.unique(epoch):
            index[epoch == e] = self._order(int(e))[offset[epoch == e]]
        return epoch, index

    def train_batch(self, step: int, rank: int = 0, num_ranks: int = 1) -> tuple[Tensor, Tensor]:
        """This rank's share of a step: images (B / num_ranks, 3, S, S) float32, normalized; labels int64."""
        epoch, index = self.positions(step, rank, num_ranks)
        images = self._crop(epoch, index)
        if self.recipe.flip_probability:
            draw = uniforms(self.seed, Purpose.FLIP, epoch, index)[:, 0]
            flip = torch.from_numpy(draw < self.recipe.flip_probability)
            images[flip] = images[flip].flip(-1)
        return self._normalize(images), self._train_labels[index]

    def test_batch(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Test images [start, stop), as far as there are, without augmentation, and their labels."""
        images = torch.from_numpy(np.array(self._test_images[start:stop])).permute(0, 3, 1, 2)
        return self._normalize(images), torch.from_numpy(np.array(self._test_labels[start:stop]))

    def _epoch_order(self, epoch: int) -> NDArray[np.int64]:
        return epoch_order(self.seed, epoch, self.num_train)

    def _crop(self, epoch: NDArray[np.int64], index: NDArray[np.int64]) -> Tensor:
        """A random window of each zero-padded image, by one gather: (B, 3, S, S) uint8."""
        size = self.info.image_size
        spare = self._train_images.shape[-1] - size
        if spare == 0:
            return self._train_images[index]
        draws = uniforms(self.seed, Purpose.CROP, epoch, index)[:, :2]
        top, left = torch.from_numpy((draws * (spare + 1)).astype(np.int64)).unbind(1)
        windows = self._train_images.unfold(2, size, 1).unfold(3, size, 1)  # a view: (N, 3, spare+1, spare+1, S, S)
        return windows[torch.from_numpy(index), :, top, left]

    def _normalize(self, images: Tensor) -> Tensor:
        return images.float().sub_(self._mean).div_(self._std)


def _check_supported(recipe: Recipe, image_size: int, info: ImageSetInfo) -> None:
    asked = [name for name, off in _NOT_YET.items() if getattr(recipe, name) != off]
    if recipe.crop == "random_resized":
        asked.append("crop='random_resized'")
    if asked:
        raise SpecError(
            f"recipe {recipe.name!r} asks for {', '.join(asked)}, which the memory loader does not do yet; "
            "use the profile laptop or gpu, whose recipes name what they leave out"
        )
    if image_size != info.image_size:
        raise SpecError(
            f"image_size {image_size} with {info.name}: the memory loader gives images of {info.image_size} pixels only"
        )
