"""The training stream against slow code that looks at one sample at a time, on packaged real images."""

import numpy as np
import pytest
import torch
from PIL import Image

from imagesets.augment.parameters import resized_crops
from imagesets.catalog import get_info
from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.fractions import fraction_indices
from imagesets.loader import ImageLoader
from imagesets.randomness import Purpose, Samples, uniforms
from suite.base.errors import SpecError
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe

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
    sample = Samples(np.array([epoch]), np.array([index]), np.array([0]))
    top, left = (int(9 * u) for u in uniforms(seed, Purpose.CROP, sample)[0, :2])
    window = padded[top : top + 32, left : left + 32]
    if uniforms(seed, Purpose.FLIP, sample)[0, 0] < 0.5:
        window = window[:, ::-1]
    return ((window / 255 - np.array(info.mean)) / np.array(info.std)).transpose(2, 0, 1)


def all_samples(images):
    return Samples(*map(np.concatenate, zip(*map(images.samples, range(images.num_steps)), strict=True)))


@pytest.mark.parametrize(
    "step", [0, 6, 13, 16]
)  # 160 images, batch 24: 6 crosses an epoch's end; 16 draws are made at once
def test_a_batch_is_what_the_definition_says_sample_by_sample(step):
    images = ImageLoader(experiment())
    batch, _ = images.train_batch(step)
    epochs, indices, _ = images.samples(step)
    expected = np.stack([slow_sample(int(e), int(i)) for e, i in zip(epochs, indices, strict=True)])
    np.testing.assert_allclose(batch.numpy(), expected, atol=1e-5)


def test_images_drawn_by_the_seed_are_the_same_for_two_models_and_others_for_another_seed():
    def first_batch(**changes):
        return ImageLoader(experiment(images_drawn_by_seed=True, **changes)).train_batch(0)

    assert torch.equal(first_batch().images, first_batch(model="convit_micro").images)
    recipe = RECIPE.model_copy(update={"crop": "none", "crop_padding": 0, "flip_probability": 0.0, "batch_size": 160})
    stored, epochs = open_arrays(ensure("cifar10_sample")), {}
    for seed in (3, 4):
        info, batch = get_info("cifar10_sample"), first_batch(recipe=recipe, seed=seed)
        pixels = batch.images.permute(0, 2, 3, 1).numpy() * np.array(info.std) + np.array(info.mean)
        epochs[seed] = {image.tobytes() for image in (pixels * 255).round().astype(np.uint8)}
        kept = fraction_indices(stored["train_labels"], 0.5, 10, seed)
        assert epochs[seed] == {image.tobytes() for image in stored["train_images"][kept]}
    assert epochs[3] != epochs[4]


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
def test_any_number_of_ranks_sees_the_same_set_at_each_step(num_ranks):
    images = ImageLoader(experiment())
    whole, labels = images.train_batch(6)
    shares = [images.train_batch(6, rank, num_ranks) for rank in range(num_ranks)]
    assert torch.equal(torch.stack([s[0] for s in shares], 1).flatten(0, 1), whole)
    assert torch.equal(torch.stack([s[1] for s in shares], 1).flatten(), labels)


def test_a_fresh_loader_continues_in_mid_epoch_with_the_same_batch():
    first = ImageLoader(experiment())
    *_, last = first.train_batches(0, 6)
    resumed = next(ImageLoader(experiment()).train_batches(5, 9))
    assert torch.equal(last.images, resumed.images)
    assert torch.equal(last.labels, resumed.labels)


def test_each_epoch_sees_every_sample_once_also_where_the_batch_does_not_divide_it():
    images = ImageLoader(experiment())
    epochs, indices, _ = all_samples(images)
    for epoch in range(3):
        assert sorted(indices[epochs == epoch]) == list(range(160))


def test_every_fraction_sees_the_same_number_of_images():
    steps = [
        ImageLoader(experiment(train_fraction=f, recipe=RECIPE.with_epochs(4 / f))).num_steps
        for f in (0.125, 0.25, 0.5, 1.0)  # each keeps a whole number per class
    ]
    assert steps == [4 * 320 // 24] * 4


def test_the_test_split_is_whole_and_in_order_whatever_the_fraction():
    images = ImageLoader(experiment(train_fraction=0.125))
    stored = open_arrays(ensure("cifar10_sample"))
    batch, labels = images.test_batch(0, 500)
    info = get_info("cifar10_sample")
    restored = batch * torch.tensor(info.std).reshape(3, 1, 1) + torch.tensor(info.mean).reshape(3, 1, 1)
    assert np.array_equal((restored * 255).round().permute(0, 2, 3, 1).numpy().astype(np.uint8), stored["test_images"])
    assert np.array_equal(labels.numpy(), stored["test_labels"])
    assert images.num_test == 100


@pytest.mark.parametrize(
    ("normalization", "mean", "std"),
    [
        ("own", (0.49140, 0.48216, 0.44653), (0.24703, 0.24349, 0.26159)),
        ("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("half", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ("cordonnier", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ],
)
def test_train_and_test_images_are_normalized_as_the_experiment_says(normalization, mean, std):
    recipe = RECIPE.model_copy(update={"crop": "none", "crop_padding": 0, "flip_probability": 0.0})
    images = ImageLoader(experiment(recipe=recipe, train_fraction=1, normalization=normalization))
    stored = open_arrays(ensure("cifar10_sample"))
    for batch, pixels in (
        (images.train_batch(0).images, stored["train_images"][images.samples(0).index]),
        (images.test_batch(0, 24).images, stored["test_images"][:24]),
    ):
        expected = (np.array(pixels) / 255 - np.array(mean)) / np.array(std)
        np.testing.assert_allclose(batch.permute(0, 2, 3, 1).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_every_test_image_counts_once_at_any_number_of_ranks(num_ranks):
    images = ImageLoader(experiment())
    shares = [list(images.test_batches(30, rank, num_ranks)) for rank in range(num_ranks)]
    assert len({len(share) for share in shares}) == 1
    labels = torch.cat([batch.labels for share in shares for batch in share])
    assert sorted(labels[labels >= 0].tolist()) == sorted(open_arrays(ensure("cifar10_sample"))["test_labels"])


def test_repeated_augmentation_shows_all_images_over_the_epochs_and_each_three_times_differently():
    recipe = RECIPE.model_copy(update={"repeated_augmentation": 3, "epochs": 40.0})
    images = ImageLoader(experiment(recipe=recipe))
    epoch, index, repeat = all_samples(images)
    assert set(index) == set(range(160))
    first = index[epoch == 0]
    assert len(first) == 160
    assert np.bincount(np.bincount(first, minlength=160)).tolist() == [106, 1, 0, 53]  # 53 thrice, the last one once
    assert repeat[:6].tolist() == [0, 1, 2, 0, 1, 2]
    batch = images.train_batch(0).images
    assert not torch.equal(batch[0], batch[1])


@pytest.mark.parametrize(("test_crop", "resize"), [(0.875, 64), (0.9, 62), (1.0, 56)])
def test_images_of_another_size_are_resized_and_tested_in_the_middle(test_crop, resize):
    recipe = RECIPE.model_copy(update={"crop": "random_resized", "crop_padding": 0, "test_crop": test_crop})
    images = ImageLoader(experiment(recipe=recipe, image_size=56))
    assert images.train_batch(0).images.shape == (24, 3, 56, 56)
    stored = Image.fromarray(np.array(open_arrays(ensure("cifar10_sample"))["test_images"][7]))
    start = (resize - 56) // 2
    window = slice(start, start + 56)
    expected = np.asarray(stored.resize((resize, resize), Image.Resampling.BICUBIC))[window, window]
    info = get_info("cifar10_sample")
    found = images.test_batch(7, 1).images[0].permute(1, 2, 0).numpy() * np.array(info.std) + np.array(info.mean)
    np.testing.assert_allclose(found * 255, expected, atol=1.01)


def test_random_interpolation_resizes_each_crop_by_one_of_pillows_two_filters():
    changes = {"crop": "random_resized", "crop_padding": 0, "flip_probability": 0.0, "train_interpolation": "random"}
    images = ImageLoader(experiment(recipe=RECIPE.model_copy(update=changes), image_size=56, train_fraction=1))
    samples, info = images.samples(0), get_info("cifar10_sample")
    pixels = images.train_batch(0).images.permute(0, 2, 3, 1).numpy() * np.array(info.std) + np.array(info.mean)
    boxes = resized_crops(3, samples, np.full((24, 2), 32))
    stored = open_arrays(ensure("cifar10_sample"))["train_images"]
    chosen = []
    for found, index, (top, left, height, width) in zip(pixels, samples.index, boxes, strict=True):
        window = Image.fromarray(np.array(stored[index][top : top + height, left : left + width]))
        filters = (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)
        errors = [abs(found * 255 - np.asarray(window.resize((56, 56), one))).max() for one in filters]
        assert min(errors) < 1.01 < max(errors)
        chosen.append(int(np.argmin(errors)))
    assert chosen == [int(u >= 0.5) for u in uniforms(3, Purpose.INTERPOLATION, samples, 1)[:, 0]]
    assert 4 < sum(chosen) < 20


def test_a_padded_crop_of_another_size_is_refused():
    with pytest.raises(SpecError, match="expected image_size 224"):
        ImageLoader(experiment(image_size=224))


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_a_search_is_scored_on_the_last_tenth_of_each_class_which_it_does_not_train_on(fraction):
    arrays = open_arrays(ensure("cifar10_sample"))
    by_class = [[i for i, label in enumerate(arrays["train_labels"]) if label == c] for c in range(10)]
    held_out = sorted(i for members in by_class for i in members[-4:])  # a tenth of 32, rounded up
    trained_on = sorted(i for members in by_class for i in members[: int(28 * fraction)])
    images = ImageLoader(experiment(evaluated_on="held_out", train_fraction=fraction, recipe=PLAIN))
    assert images.num_test == 40
    assert images.num_train == len(trained_on)
    tested = torch.cat([images.test_batch(at, 1).images for at in range(40)])
    assert torch.equal(tested, torch.stack([normalized(arrays["train_images"][i]) for i in held_out]))
    seen = torch.cat([images.train_batch(step).images for step in range(-(-len(trained_on) // 24))])
    expected = {normalized(arrays["train_images"][i]).numpy().tobytes() for i in trained_on}
    assert {image.numpy().tobytes() for image in seen} == expected


PLAIN = RECIPE.model_copy(update={"crop": "none", "crop_padding": 0, "flip_probability": 0.0})


def normalized(image):
    whole = ImageLoader(experiment(recipe=PLAIN))
    return whole._augment.normalize(torch.from_numpy(image.copy()).permute(2, 0, 1)[None])[0]
