"""Shuffled images against a loop over pixels, and what shuffling takes from a network and what it leaves."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from imagesets.augment.shuffling import Shuffle
from imagesets.loader import ImageLoader
from imagesets.randomness import Purpose, random_order
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.experiment import Experiment

RECIPE = DEIT.model_copy(update={"batch_size": 24, "epochs": 9.0, "mix_group": 0})
KINDS = ("patches", "within_patches")


def experiment(shuffle="none", patch=4, **changes):
    fields = {"model": "deit_micro", "dataset": "cifar10_sample", "image_size": 32, "recipe": RECIPE, "seed": 3}
    return Experiment(**{**fields, "shuffle": shuffle, "shuffle_patch_size": patch * (shuffle != "none"), **changes})


def slow(image, shuffle, patch):
    """Shuffle one image (3, S, S), a pixel at a time."""
    side = image.shape[-1] // patch
    patches = range(side**2)
    patch_order = random_order(0, Purpose.SHUFFLE, side**2) if shuffle == "patches" else patches
    pixel_order = random_order(0, Purpose.SHUFFLE, patch**2) if shuffle == "within_patches" else range(patch**2)
    shuffled = np.empty_like(image)
    for to_patch, to_pixel in product(patches, range(patch**2)):
        places = []
        for in_grid, in_patch in ((to_patch, to_pixel), (patch_order[to_patch], pixel_order[to_pixel])):
            (row, column), (y, x) = divmod(in_grid, side), divmod(in_patch, patch)
            places.append((row * patch + y, column * patch + x))
        (to_y, to_x), (from_y, from_x) = places
        shuffled[:, to_y, to_x] = image[:, from_y, from_x]
    return shuffled


def all_slow(images, shuffle, patch):
    return np.stack([slow(image.numpy(), shuffle, patch) for image in images])


@pytest.mark.parametrize("shuffle", KINDS)
@pytest.mark.parametrize("patch", [1, 4, 16, 32])
def test_training_and_test_images_are_shuffled_as_a_loop_over_their_pixels_does_it(shuffle, patch):
    plain, shuffled = ImageLoader(experiment()), ImageLoader(experiment(shuffle, patch))
    for of in (  # after erasing, mixup and cutmix
        lambda images: images.train_batch(1),
        lambda images: next(images.test_batches(24)),
        lambda images: images.spread_batch(9),
    ):
        before, after = of(plain), of(shuffled)
        assert np.array_equal(after.images.numpy(), all_slow(before.images, shuffle, patch))
        assert torch.equal(after.labels, before.labels)
    assert torch.equal(next(shuffled.train_batches(1, 2)).images, shuffled.train_batch(1).images)
    pixels = plain.spread_pixels(9).permute(0, 3, 1, 2)
    assert np.array_equal(shuffled.spread_pixels(9).permute(0, 3, 1, 2).numpy(), all_slow(pixels, shuffle, patch))


@pytest.mark.parametrize("shuffle", KINDS)
def test_the_permutation_is_one_for_all_seeds_models_and_images(shuffle):
    places = torch.arange(3 * 32 * 32).view(1, 3, 32, 32)
    shuffled = Shuffle(experiment(shuffle))(places.expand(2, -1, -1, -1))
    assert not torch.equal(shuffled[0], places[0])
    assert torch.equal(shuffled[0], shuffled[1])
    others = {"seed": 8, "model": "convit_micro", "train_fraction": 0.5, "images_drawn_by_seed": True}
    assert torch.equal(Shuffle(experiment(shuffle, **others))(places)[0], shuffled[0])
    assert random_order(0, Purpose.SHUFFLE, 16).tolist() == [10, 14, 6, 2, 9, 3, 1, 12, 7, 8, 15, 5, 13, 4, 0, 11]


@pytest.mark.parametrize("shuffle", KINDS)
def test_any_number_of_ranks_sees_the_same_shuffled_images(shuffle):
    images = ImageLoader(experiment(shuffle))
    whole = images.train_batch(6).images
    for num_ranks in (2, 3):
        shares = [images.train_batch(6, rank, num_ranks).images for rank in range(num_ranks)]
        assert torch.equal(torch.stack(shares, 1).flatten(0, 1), whole)
    halves = [torch.stack([batch.images for batch in images.test_batches(25, rank, 2)]) for rank in range(2)]
    assert torch.equal(torch.stack(halves, 1).flatten(0, 2), images.test_batch(0, 100).images)


def test_a_bag_of_patches_tells_images_apart_as_well_with_its_patches_shuffled_and_not_with_their_pixels_shuffled():
    torch.manual_seed(0)
    embed, head = nn.Sequential(nn.Conv2d(3, 32, 4, stride=4), nn.GELU()), nn.Linear(32, 10)

    def logits(shuffle):
        with torch.no_grad():
            return head(embed(ImageLoader(experiment(shuffle)).test_batch(0, 50).images).mean((2, 3)))

    as_they_are, patches, within = map(logits, ("none", *KINDS))
    torch.testing.assert_close(patches, as_they_are, atol=1e-5, rtol=0)
    assert (within - as_they_are).abs().amax() > 1e-2
