"""The memory loader against slow code that looks at one sample at a time, on packaged real images."""

import numpy as np
import pytest
import torch

from imagesets.catalog import get_info
from imagesets.fetch import ensure
from imagesets.fractions import fraction_indices
from imagesets.memory import MemoryImages
from imagesets.randomness import Purpose, uniforms
from imagesets.storage import open_arrays
from suite.errors import SpecError
from suite.recipes import DEIT
from suite.spec import Experiment, Recipe

RECIPE = Recipe(
    name="test", epochs=4, batch_size=24, learning_rate=1e-3, crop="pad", crop_padding=4, flip_probability=0.5
)


def experiment(**changes):
    fields = {"model": "deit_micro", "dataset": "cifar10_sample", "image_size": 32, "train_fraction": 0.5, "seed": 3}
    return Experiment(**{**fields, "recipe": RECIPE, **changes})


def slow_sample(epoch, index, seed=3):
    """One augmented training sample by the definition: pad 4 zeros, crop at a drawn corner, flip, normalize."""
    info, arrays = get_info("cifar10_sample"), open_arrays(ensure("cifar10_sample"))
    image = arrays["train_images"][fraction_indices(arrays["train_labels"], 0.5, 10)][index]
    padded = np.zeros((40, 40, 3))
    padded[4:36, 4:36] = image
    place = np.array([index])
    top, left = (int(9 * u) for u in uniforms(seed, Purpose.CROP, epoch, place)[0, :2])
    window = padded[top : top + 32, left : left + 32]
    if uniforms(seed, Purpose.FLIP, epoch, place)[0, 0] < 0.5:
        window = window[:, ::-1]
    return ((window / 255 - np.array(info.mean)) / np.array(info.std)).transpose(2, 0, 1)


@pytest.mark.parametrize("step", [0, 6, 13])  # 160 images, batch 24: step 6 crosses an epoch's end
def test_a_batch_is_what_the_definition_says_sample_by_sample(step):
    images = MemoryImages(experiment())
    batch, _ = images.train_batch(step)
    epochs, indices = images.positions(step)
    expected = np.stack([slow_sample(int(e), int(i)) for e, i in zip(epochs, indices, strict=True)])
    np.testing.assert_allclose(batch.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
def test_any_number_of_ranks_sees_the_same_set_at_each_step(num_ranks):
    images = MemoryImages(experiment())
    whole, labels = images.train_batch(6)
    shares = [images.train_batch(6, rank, num_ranks) for rank in range(num_ranks)]
    assert torch.equal(torch.stack([s[0] for s in shares], 1).flatten(0, 1), whole)
    assert torch.equal(torch.stack([s[1] for s in shares], 1).flatten(), labels)


def test_a_fresh_loader_continues_in_mid_epoch_with_the_same_batch():
    first = MemoryImages(experiment())
    for step in range(5):
        first.train_batch(step)
    assert torch.equal(first.train_batch(5)[0], MemoryImages(experiment()).train_batch(5)[0])


def test_each_epoch_sees_every_sample_once_also_where_the_batch_does_not_divide_it():
    images = MemoryImages(experiment())
    pairs = [images.positions(step) for step in range(images.num_steps)]
    epochs, indices = (np.concatenate(part) for part in zip(*pairs, strict=True))
    for epoch in range(3):
        assert sorted(indices[epochs == epoch]) == list(range(160))


def test_every_fraction_sees_the_same_number_of_images():
    steps = [
        MemoryImages(experiment(train_fraction=f, recipe=RECIPE.with_epochs(4 / f))).num_steps
        for f in (0.125, 0.25, 0.5, 1.0)  # each keeps a whole number per class
    ]
    assert steps == [4 * 320 // 24] * 4


def test_the_test_split_is_whole_and_in_order_whatever_the_fraction():
    images = MemoryImages(experiment(train_fraction=0.125))
    stored = open_arrays(ensure("cifar10_sample"))
    batch, labels = images.test_batch(0, 100)
    info = get_info("cifar10_sample")
    restored = batch * torch.tensor(info.std).reshape(3, 1, 1) + torch.tensor(info.mean).reshape(3, 1, 1)
    assert np.array_equal((restored * 255).round().permute(0, 2, 3, 1).numpy().astype(np.uint8), stored["test_images"])
    assert np.array_equal(labels.numpy(), stored["test_labels"])
    assert images.num_test == 100


def test_parts_of_a_recipe_that_the_loader_lacks_are_refused_by_name():
    with pytest.raises(SpecError, match="rand_augment, color_jitter, random_erasing, mixup, cutmix, repeated"):
        MemoryImages(experiment(recipe=DEIT))
    with pytest.raises(SpecError, match="image_size 224"):
        MemoryImages(experiment(image_size=224))
