"""The one loader: an experiment's training stream and test batches, from images stored in any format.

    host    order (seed, epoch) -> samples of a step -> all that is drawn for them; their crops (a format's windows)
    device  augmentation, normalization and shuffling of what the host sends, in one copy: pixels as read, labels, draws

The training stream is one endless sequence, epoch after epoch, cut into batches: step t takes positions
[t * B, (t + 1) * B), so every sample is seen equally often also where B does not divide the set. Rank r of R takes
every R-th of them, starting at r. Which sample a position holds, and how it is augmented, are functions of
(seed, epoch, sample, repeat): no format, worker, rank or restart has a say in it.

Small batches are prepared several at once. On the CPU both parts are done by threads ahead; how a batch gets to a
device is in ``prefetch``.

Shape legend: B batch, S image size.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import floor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from torch import Tensor

from imagesets.augment.parameters import flips, padded_crops, resized_bilinearly, resized_crops
from imagesets.augment.pipeline import Augmentation, Draws
from imagesets.augment.shuffling import Shuffle
from imagesets.buffer_pool import BufferPool
from imagesets.catalog import statistics
from imagesets.decode import Interpolation, Pixels
from imagesets.formats.stored import CorruptImageError
from imagesets.fractions import fraction_indices, hold_out, spread_over_classes
from imagesets.prefetch import start_threads, stream_batches
from imagesets.prepared import check_side, choose_format, find_info
from imagesets.randomness import Purpose, Samples, random_order
from imagesets.stored_split import open_splits
from suite.base.errors import DataError
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources

_STEPS_DRAWN_AT_ONCE = 16  # for a small batch this takes hardly longer than one
_PIXELS_AT_ONCE = 1 << 19  # all three channels as one: 512 images of CIFAR, 10 of 224 pixels
_NOT_COUNTED = -1  # the label of what only fills a test batch


class Batch(NamedTuple):
    """images (B, 3, S, S) float32, normalized; labels (B,) int64, or (B, num_classes) where images are mixed."""

    images: Tensor
    labels: Tensor


class _Chosen(NamedTuple):
    """The samples of one step or several, and what reading them needs to have drawn."""

    samples: Samples
    corners: NDArray[np.int64]  # (B, 2), of a window of the padded image
    flipped: NDArray[np.bool_]  # (B,)
    positions: NDArray[np.int64]  # (B,), in the batch of all ranks


class _Loaded(NamedTuple):
    """Batches as they travel to the device: images (B, S, S, 3) uint8, as read; for training also what was drawn."""

    images: Tensor
    labels: Tensor
    draws: Draws = Draws()


def _steps_at_once(num_pixels: int) -> int:
    """How many steps' batches, each of so many pixels, are loaded and finished as one: of small ones several.

    Several batches need no more operations than one, and starting those of DeiT's augmentation takes longer than
    carrying them out; on a GPU, longer than a small network's step. A power of two, as a block's number of steps is.
    """
    return min(_STEPS_DRAWN_AT_ONCE, 1 << max(0, (_PIXELS_AT_ONCE // num_pixels).bit_length() - 1))


class ImageLoader:
    """An experiment's training and test images. SpecError for an unknown data set or a crop that the image size does
    not allow; DataError if the data are missing or broken, or the fraction leaves a class empty."""

    def __init__(self, experiment: Experiment, resources: Resources | None = None) -> None:
        resources = resources or Resources()
        data_dir = Path(resources.data_dir) if resources.data_dir else None
        info = self.info = find_info(experiment.dataset, data_dir, resources.loader)
        self.recipe, self._seed, self._size = experiment.recipe, experiment.seed, experiment.image_size
        self.storage_format = resources.loader or choose_format(info, data_dir)
        splits = open_splits(info, self.storage_format, data_dir)
        self._train, self._test = splits["train"], splits["test"]
        left = np.arange(len(self._train.labels))
        drawn_by = experiment.seed if experiment.images_drawn_by_seed else None
        self._tested = np.flatnonzero(self._test.labels < info.num_classes)
        if experiment.evaluated_on == "held_out":
            left, self._tested = hold_out(self._train.labels, info.num_classes)
            self._test = self._train
        labels = self._train.labels[left]
        self._kept = left[fraction_indices(labels, experiment.train_fraction, info.num_classes, drawn_by)]
        check_side(experiment, self._train.stored_side)
        pads = self.recipe.crop == "pad"  # then images are used at their stored size
        self._cuts_whole = pads or (self.recipe.crop == "none" and self._train.common_size == self._size)
        self._tests_whole = self._size in (self._test.common_size, self._test.stored_side if pads else None)
        mean, std = statistics(info, experiment.normalization)
        self._augment = Augmentation(self.recipe, self._seed, mean, std, info.num_classes)
        self._shuffle = Shuffle(experiment)
        self._order = lru_cache(maxsize=2)(lambda epoch: random_order(self._seed, Purpose.ORDER, self.num_train, epoch))
        self._chosen_of_block = lru_cache(maxsize=2)(self._choose_block)
        self._skip_corrupt = resources.skip_corrupt
        self.corrupt: set[tuple[str, int]] = set()  # (split, sample) of images that were skipped
        self._num_workers = resources.num_workers or resources.threads_per_rank
        self._workers = start_threads(self._num_workers, "decode")
        self._buffers = BufferPool()

    @property
    def num_train(self) -> int:
        return len(self._kept)

    @property
    def num_test(self) -> int:
        return len(self._tested)

    @property
    def test_labels(self) -> NDArray[np.int64]:
        """The classes of the test images, in the order of their batches: (N,)."""
        return self._test.labels[self._tested]

    @property
    def num_steps(self) -> int:
        return self.recipe.num_steps(self.num_train)

    # -- training

    def samples(self, step: int, rank: int = 0, num_ranks: int = 1) -> Samples:
        """This rank's share of a step, as (epoch, index among the kept images, repeat). With repeated augmentation an
        epoch has the first images of its order alone, each several times in a row."""
        return self._choose(range(step, step + 1), rank, num_ranks).samples

    def train_batch(self, step: int, rank: int = 0, num_ranks: int = 1) -> Batch:
        """This rank's share of a step, on the CPU."""
        return self._augmented(self._load(range(step, step + 1), rank, num_ranks))

    def train_batches(
        self, first: int, last: int, rank: int = 0, num_ranks: int = 1, device: torch.device | None = None
    ) -> Iterator[Batch]:
        """Yield this rank's share of several steps, prepared while earlier ones are trained on.

        Small batches are parts of a larger one, and share its memory.

        Args:
            first, last: the steps, from the first to the one before the last.
            rank, num_ranks, device: the share, and where batches are finished; None is the CPU.
        """
        share = self._share(rank, num_ranks)
        at_once = _steps_at_once(share * self._size**2)
        numbers = range(first // at_once, -(-last // at_once) if first < last else 0)
        parts = (range(max(first, n * at_once), min(last, (n + 1) * at_once)) for n in numbers)
        for batches in stream_batches(lambda part: self._load(part, rank, num_ranks), self._augmented, parts, device):
            yield from map(Batch, *(tensor.split(share) for tensor in batches))

    def _augmented(self, loaded: _Loaded) -> Batch:
        images, labels = self._augment(_channels_first(loaded.images), loaded.labels, loaded.draws)
        return Batch(self._shuffle(images), labels)

    def _load(self, steps: range, rank: int, num_ranks: int) -> _Loaded:
        """Read and draw several steps of one block, one after the other."""
        chosen = self._choose(steps, rank, num_ranks)
        index = chosen.samples.index
        pixels = self._train.gather(self._kept[index]) if self._cuts_whole else None
        if pixels is None:
            pixels, index = self._read_train(chosen.samples)
        if self.recipe.crop == "pad" and self.recipe.crop_padding:
            pixels = _cut_padded(pixels, chosen.corners, self.recipe.crop_padding)
        labels = torch.from_numpy(self._train.labels[self._kept[index]])
        draws = self._augment.draw(chosen.samples, steps, self._size, chosen.flipped, chosen.positions)
        return _Loaded(torch.from_numpy(pixels), labels, draws)

    def _share(self, rank: int, num_ranks: int) -> int:
        return len(range(rank, self.recipe.batch_size, num_ranks))

    def _choose(self, steps: range, rank: int, num_ranks: int) -> _Chosen:
        number, place = divmod(steps.start, _STEPS_DRAWN_AT_ONCE)
        share = self._share(rank, num_ranks)
        part, block = slice(place * share, (place + len(steps)) * share), self._chosen_of_block(number, rank, num_ranks)
        samples = Samples(*(field[part] for field in block.samples))
        return _Chosen(samples, block.corners[part], block.flipped[part], block.positions[part])

    def _choose_block(self, block: int, rank: int, num_ranks: int) -> _Chosen:
        """Samples and draws of several steps, one after the other."""
        recipe = self.recipe
        step = np.arange(block * _STEPS_DRAWN_AT_ONCE, (block + 1) * _STEPS_DRAWN_AT_ONCE)
        position = (step[:, None] * recipe.batch_size + np.arange(rank, recipe.batch_size, num_ranks)).reshape(-1)
        epoch, slot = np.divmod(position, self.num_train)
        index = np.empty_like(position)
        for e in np.unique(epoch):
            index[epoch == e] = self._order(int(e))[slot[epoch == e] // recipe.repeated_augmentation]
        samples = Samples(epoch, index, slot % recipe.repeated_augmentation)
        corners = padded_crops(self._seed, samples, 2 * recipe.crop_padding)
        flipped = flips(self._seed, samples, recipe.flip_probability)
        return _Chosen(samples, corners, flipped, position % recipe.batch_size)

    def _read_train(self, samples: Samples) -> tuple[Pixels, NDArray[np.int64]]:
        """Read each sample, or a window of it, resized: (B, S, S, 3), and their indices. In the place of a corrupt one,
        where they are skipped, comes the next that is not."""
        index, boxes, filters = samples.index.copy(), self._boxes(samples), self._filters(samples)

        def read_or_skip(place: int, out: Pixels) -> None:
            def read() -> None:
                if self._cuts_whole:
                    np.copyto(out, self._train.whole(stored))
                else:
                    self._train.window(stored, boxes[place], self._size, out, filters[place])

            for _ in range(self.num_train):
                stored = int(self._kept[index[place]])
                if self._try("train", stored, read):
                    return
                index[place] = (index[place] + 1) % self.num_train
                one = Samples(*(part[place : place + 1] for part in (samples.epoch, index, samples.repeat)))
                boxes[place], filters[place] = self._boxes(one)[0], self._filters(one)[0]
            raise DataError("no training image can be decoded")

        return self._in_parallel(len(index), read_or_skip), index

    def _boxes(self, samples: Samples) -> NDArray[np.int64]:
        """The windows of the original images that are seen: (B, 4)."""
        sizes = self._train.sizes[self._kept[samples.index]]
        if self.recipe.crop == "random_resized":
            return resized_crops(self._seed, samples, sizes)
        return np.concatenate([np.zeros_like(sizes), sizes], axis=1, dtype=np.int64)

    def _filters(self, samples: Samples) -> list[Interpolation]:
        """The interpolation that each window is resized with."""
        if self.recipe.train_interpolation == "bicubic":
            return ["bicubic"] * len(samples.index)
        return ["bilinear" if drawn else "bicubic" for drawn in resized_bilinearly(self._seed, samples)]

    # -- test

    def test_batches(
        self, batch_size: int, rank: int = 0, num_ranks: int = 1, device: torch.device | None = None
    ) -> Iterator[Batch]:
        """Yield this rank's batches of the test split, without augmentation.

        Every rank gets as many batches as the others, since ZeRO-3 gathers weights in each forward pass. What is
        there only for that, and images that cannot be decoded, have the label -1: they do not count.

        Args:
            batch_size: the batch size of one rank.
            rank, num_ranks, device: the share, and where batches are finished; None is the CPU.
        """
        starts = range(rank * batch_size, self.num_test + rank * batch_size, num_ranks * batch_size)
        chosen = (self._tested[start : start + batch_size] for start in starts)
        return stream_batches(self._load_chosen, self._normalized, chosen, device)

    def test_batch(self, start: int, batch_size: int) -> Batch:
        """Test images from ``start`` on, as far as there are; past the end, one that does not count."""
        return self._normalized(self._load_chosen(self._tested[start : start + batch_size]))

    def spread_batch(self, count: int) -> Batch:
        """Test images of all classes, as ``spread_over_classes`` chooses them, to look at what a network does. One that
        cannot be decoded gives its place to the next of its class; DataError where none can."""
        return self._normalized(self._load_spread(count))

    def spread_pixels(self, count: int) -> Tensor:
        """The images of ``spread_batch`` before normalization: (count, S, S, 3) uint8."""
        images = _channels_first(self._load_spread(count).images)
        return self._shuffle(images).permute(0, 2, 3, 1).contiguous()

    def _load_spread(self, count: int) -> _Loaded:
        left = self._tested
        while len(left):
            chosen = left[spread_over_classes(self._test.labels[left], count)]
            loaded = self._load_chosen(chosen)
            corrupt = chosen[(loaded.labels == _NOT_COUNTED).numpy()]
            if not len(corrupt):
                return loaded
            left = np.setdiff1d(left, corrupt)
        raise DataError("no test image can be decoded; expected all of them, or with --skip-corrupt most")

    def _normalized(self, loaded: _Loaded) -> Batch:
        return Batch(self._shuffle(self._augment.normalize(_channels_first(loaded.images))), loaded.labels)

    def _load_chosen(self, chosen: NDArray[np.int64]) -> _Loaded:
        """These stored test images as they are read; of none, one that does not count."""
        labels = self._test.labels[chosen] if len(chosen) else np.array([_NOT_COUNTED])
        pixels = self._test.gather(chosen) if self._tests_whole and len(chosen) else None

        def read_or_blank(place: int, out: Pixels) -> None:
            def read() -> None:
                if self._tests_whole:
                    np.copyto(out, self._test.whole(int(chosen[place])))
                else:
                    resize = floor(self._size / self.recipe.test_crop)
                    self._test.centered(int(chosen[place]), resize, self._size, out)

            if not len(chosen) or not self._try("test", int(chosen[place]), read):
                out[:], labels[place] = 0, _NOT_COUNTED

        if pixels is None:
            pixels = self._in_parallel(len(labels), read_or_blank)
        return _Loaded(torch.from_numpy(pixels), torch.from_numpy(labels))

    # -- reading

    def _try(self, split: str, stored: int, read: Callable[[], None]) -> bool:
        """Whether it could be read; a corrupt image is remembered where it is to be skipped."""
        try:
            read()
        except CorruptImageError:
            if not self._skip_corrupt:
                raise
            self.corrupt.add((split, stored))
            return False
        return True

    def _in_parallel(self, count: int, read: Callable[[int, Pixels], None]) -> Pixels:
        """Let the workers fill one batch: (B, S, S, 3)."""
        out: Pixels = self._buffers.take((count, self._size, self._size, 3), torch.uint8).numpy()

        def read_share(worker: int) -> None:
            for place in range(worker, count, self._num_workers):
                read(place, out[place])

        for done in [self._workers.submit(read_share, worker) for worker in range(self._num_workers)]:
            done.result()
        return out


def _channels_first(images: Tensor) -> Tensor:
    """(B, S, S, 3) -> (B, 3, S, S), a view of the same memory."""
    return images.permute(0, 3, 1, 2)


def _cut_padded(pixels: Pixels, corners_B2: NDArray[np.int64], padding: int) -> Pixels:
    """A window of each image (B, S, S, 3), padded by zeros; copied a row of pixels at a time."""
    batch, size, _, channels = pixels.shape
    side = size + 2 * padding
    padded = np.zeros((batch, side, side, channels), np.uint8)  # faster than numpy's pad
    padded[:, padding:-padding, padding:-padding] = pixels
    row = np.dtype((np.void, size * channels))
    first_BS = (np.arange(batch)[:, None] * side + corners_B2[:, :1] + np.arange(size)) * side + corners_B2[:, 1:]
    rows = as_strided(padded.reshape(-1)[: row.itemsize].view(row), (batch * side**2 - size + 1,), (channels,))
    windows: Pixels = rows[first_BS].view(np.uint8).reshape(pixels.shape)
    return windows
