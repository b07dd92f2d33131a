"""A finished run, or one of timm's models with a local file of weights -> a network, and how images are shown to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from imagesets.augment.shuffling import Shuffle
from imagesets.catalog import RGB, statistics
from imagesets.decode import decode_centered
from imagesets.loader import Batch
from imagesets.prefetch import stream_batches
from imagesets.prepared import find_info, find_prepared
from suite.base.errors import DataError, SpecError
from suite.base.files import sha256_of
from suite.evaluation.sources import TestSet
from suite.export.folder import finished_result
from suite.plugins.find_plugin import find_model
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.measure.evaluate import evaluate
from suite.training.start import trained_network


@dataclass(frozen=True)
class Tested:
    """A network and what its test images pass through, as in its own evaluation.

    Args:
        name: the run's id, or ``timm:NAME`` with the name of its weights' file and eight digits of their SHA-256.
        classes: names of the network's outputs.
        own_top1_percent: accuracy on its own test set; None where it has no record of it.
        size, test_crop, statistics: side of an input, share of an image that is kept, and its mean and deviation.
        shuffle: Permutation of the finished images.
    """

    name: str
    network: nn.Module
    classes: Sequence[str]
    own_top1_percent: float | None
    size: int
    test_crop: float
    statistics: tuple[RGB, RGB]
    precision: str = "fp32"
    shuffle: Callable[[Tensor], Tensor] = lambda images: images

    def evaluate(self, test_set: TestSet, ranks: Ranks) -> dict[str, float | None]:
        """Test the network on the only rank; on a part of the classes it answers by the best of these."""
        if self.classes and (largest := test_set.labels.max()) >= len(self.classes):
            raise DataError(f"the test set has a class {largest}, expected at most {len(self.classes) - 1}")
        absent = set(range(len(self.classes))).difference(test_set.among) if test_set.among else ()
        places = torch.tensor(sorted(absent), dtype=torch.int64, device=ranks.device)
        labels = test_set.labels

        def batches(batch_size: int, *_: object) -> Iterator[Batch]:
            chosen = torch.arange(len(labels)).split(batch_size)
            return stream_batches(partial(self._load, test_set), self._finish, chosen, ranks.device)

        # all that ``evaluate`` asks of an ImageLoader
        loader: Any = SimpleNamespace(num_test=len(labels), test_labels=labels, test_batches=batches)
        with self.network.register_forward_hook(lambda *call: call[2].index_fill(1, places, -torch.inf)):
            found = evaluate(self.network, loader, ranks, self.precision)
        if not test_set.answers:
            numbers = {"top1_percent": found.top1_percent, "top5_percent": found.top5_percent, "test_loss": found.loss}
            return {"images": found.num_images, **numbers}
        answered = zip(test_set.answers, found.predictions.predicted.tolist(), strict=True)
        judged = [one in right for right, one in answered if right]
        top1 = 100 * sum(judged) / max(len(judged), 1)
        return {"images": len(judged), "top1_percent": top1, "top5_percent": None, "test_loss": None}

    def _load(self, test_set: TestSet, chosen: Tensor) -> Batch:
        out = np.empty((len(chosen), self.size, self.size, 3), np.uint8)
        for index, pixels in zip(chosen.tolist(), out, strict=True):
            image = test_set.images[index]
            if isinstance(image, np.ndarray) and image.shape == pixels.shape:  # it is seen whole
                pixels[...] = image
                continue
            try:
                data = image.read_bytes() if isinstance(image, Path) else image
                decode_centered(data, floor(self.size / self.test_crop), self.size, pixels)
            except (OSError, ValueError) as error:
                raise DataError(f"image {index} of the test set, {image}, cannot be decoded: {error}") from error
        return Batch(torch.from_numpy(out), torch.from_numpy(test_set.labels)[chosen])

    def _finish(self, batch: Batch) -> Batch:
        mean, std = (255 * torch.tensor(one, device=batch.images.device).view(3, 1, 1) for one in self.statistics)
        return Batch(self.shuffle(batch.images.permute(0, 3, 1, 2).float().sub_(mean).div_(std)), batch.labels)


def open_run(run: RunDirectory, data_dir: Path | None) -> Tested:
    """Open a finished run's network; its image set need not be there."""
    result = finished_result(run)
    experiment = result.experiment
    info = find_info(experiment.dataset, data_dir)
    classes = info.class_names or (_synsets() if info.num_classes == 1000 else ())
    if not classes and (prepared := find_prepared(info.name, None, data_dir)) is not None:
        classes = tuple(prepared[1].classes)
    return Tested(
        run.id, trained_network(run, experiment, info.num_classes), classes, result.top1_percent,
        experiment.image_size, experiment.recipe.test_crop, statistics(info, experiment.normalization),
        experiment.recipe.precision, Shuffle(experiment),
    )  # fmt: skip


def open_timm(words: str, weights: Path) -> Tested:
    """Open one of timm's models with a local file of weights, which is read as tensors alone.

    SpecError where timm has no such model, or the weights are none of it.
    """
    import timm

    name = find_model(words).name
    try:
        network = timm.create_model(name)
        network.load_state_dict(timm.models.load_state_dict(str(weights), weights_only=True))
    except (RuntimeError, OSError, ValueError, UnpicklingError, SafetensorError) as error:
        raise SpecError(f"{words} with {weights}: {str(error).splitlines()[0]}") from error
    shown = timm.data.resolve_data_config(model=network)
    classes = _synsets() if network.num_classes == 1000 else tuple(map(str, range(network.num_classes)))
    crop, images = shown["crop_pct"], (shown["mean"], shown["std"])
    called = f"{words}, {weights.name} {sha256_of(weights)[:8]}"
    return Tested(called, network, classes, None, shown["input_size"][1], crop, images)


def _synsets() -> tuple[str, ...]:
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo("imagenet-1k").label_names())
