"""The whole augmentation: its order, its promises, and its float parts against timm."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from timm.data.mixup import mixup_target
from timm.loss import SoftTargetCrossEntropy

from imagesets.augment.mixing import arrange_boxes, erase_, mix_, pair_images
from imagesets.augment.operations import apply_operations, group_operations
from imagesets.augment.parameters import Mixing, erasing_boxes, flips
from imagesets.augment.pipeline import Augmentation
from imagesets.augment.policies import RandAugment, rand_augment
from imagesets.randomness import Samples
from suite.base.errors import SpecError
from suite.papers.shared.deit_recipes import DEIT, DEIT_CIFAR

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
LABELS = torch.arange(12) % 10
UNMIXED = DEIT.model_copy(update={"mixup": 0.0, "cutmix": 0.0})


def augmentation(recipe, seed=3):
    return Augmentation(recipe, seed, MEAN, STD, num_classes=10)


def augment(recipe, images, labels, samples, step=0, positions=None):
    ours = augmentation(recipe)
    return ours(images, labels, ours.draw(samples, range(step, step + 1), images.shape[-1], positions=positions))


def pick(samples, place):
    return Samples(*(field[place] for field in samples))


def test_a_plain_recipe_flips_and_normalizes(images, make_samples):
    ours, labels = augment(DEIT_CIFAR, images, LABELS, make_samples(12))
    flipped = flips(3, make_samples(12), 0.5)
    assert 0 < flipped.sum() < 12
    for image, is_flipped, result in zip(images, flipped, ours, strict=True):
        turned = image.flip(-1) if is_flipped else image
        expected = (turned / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
        torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)
    assert labels is LABELS


def test_randaugment_follows_the_flip_fills_with_the_mean_and_displaces_colour_jitter(images, make_samples):
    recipe = UNMIXED.model_copy(update={"random_erasing": 0.0})
    assert recipe.color_jitter
    flipped = flips(3, make_samples(12), 0.5)
    turned = torch.stack([i.flip(-1) if f else i for i, f in zip(images, flipped, strict=True)])
    drawn = rand_augment(3, make_samples(12), RandAugment.parse(recipe.rand_augment))
    fill = torch.tensor([125, 122, 115], dtype=torch.uint8).reshape(3, 1, 1)
    expected = augmentation(recipe).normalize(apply_operations(turned, group_operations(drawn, 48), fill))
    assert torch.equal(augment(recipe, images, LABELS, make_samples(12))[0], expected)


def test_colour_jitter_is_done_where_there_is_no_randaugment(images, make_samples):
    plain = augment(DEIT_CIFAR, images, LABELS, make_samples(12))[0]
    jittered = augment(DEIT_CIFAR.model_copy(update={"color_jitter": 0.4}), images, LABELS, make_samples(12))[0]
    assert (jittered != plain).flatten(1).any(1).all()


def test_the_callers_images_stay_as_they_are(images, make_samples):
    before = images.clone()
    for recipe in (DEIT, DEIT_CIFAR, UNMIXED.model_copy(update={"flip_probability": 0.0})):
        augment(recipe, images, LABELS, make_samples(12))
    assert torch.equal(images, before)


def test_an_image_is_augmented_the_same_in_any_batch(images, make_samples):
    whole = augment(UNMIXED, images, LABELS, make_samples(12))[0]
    for place in (slice(0, 5), slice(5, 12), slice(1, 12, 3)):
        part, _ = augment(UNMIXED, images[place], LABELS[place], pick(make_samples(12), place))
        assert torch.equal(part, whole[place])


@pytest.mark.parametrize("mix_group", [0, 2, 4, 6])
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_any_number_of_ranks_mixes_the_same_pairs(num_ranks, mix_group, images, make_samples):
    recipe = DEIT.model_copy(update={"batch_size": 12, "mix_group": mix_group})
    for step in range(2):
        whole = augment(recipe, images, LABELS, make_samples(12), step)
        for rank in range(num_ranks):
            share = np.arange(rank, 12, num_ranks)
            part = augment(recipe, images[share], LABELS[share], pick(make_samples(12), share), step, share)
            assert all(torch.equal(p, w[share]) for p, w in zip(part, whole, strict=True))


def test_repeats_of_a_sample_differ(images):
    samples = Samples(np.zeros(12, dtype=int), np.zeros(12, dtype=int), np.arange(12))
    same = images[:1].expand(12, -1, -1, -1)
    results = augment(UNMIXED, same, LABELS, samples)[0]
    assert len({tuple(result.flatten().tolist()) for result in results}) > 8  # those with neither layer may agree


def test_erasing_fills_the_boxes_with_normal_noise_and_nothing_else(make_samples):
    boxes = erasing_boxes(0, make_samples(100), 0.5, 48)
    erased = torch.full((100, 3, 48, 48), 9.0)
    erase_(erased, arrange_boxes(boxes, make_samples(100)), 0)
    inside = torch.zeros(100, 3, 48, 48, dtype=torch.bool)
    for mask, (top, left, height, width) in zip(inside, boxes, strict=True):
        mask[:, top : top + height, left : left + width] = True
    assert torch.equal(erased != 9, inside)
    noise = erased[inside]
    levels = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    shares = (noise[:, None] < levels).float().mean(0)
    torch.testing.assert_close(shares, torch.distributions.Normal(0.0, 1.0).cdf(levels), atol=0.01, rtol=0)
    first = erased[boxes[:, 2].argmax()][:, inside[boxes[:, 2].argmax(), 0]]
    assert torch.corrcoef(first).fill_diagonal_(0).abs().max() < 0.1  # channels: unrelated


def test_nothing_to_erase_is_no_error(images, make_samples):
    erased = images.float()
    erase_(erased, arrange_boxes(np.zeros((12, 4), dtype=np.int64), make_samples(12)), 0)
    assert torch.equal(erased, images.float())


def smoothed_timm_loss(logits, pairs, lam, smoothing):
    """timm's loss on timm's targets, whose partners come from flipping the batch; ``pairs`` orders it so."""
    targets = mixup_target(LABELS[pairs], 10, lam, smoothing)
    return SoftTargetCrossEntropy()(logits[pairs], targets)


def mixing_of(*draws):
    """One draw a group, three groups of four images."""
    is_cutmix, lam, boxes = (np.array(field) for field in zip(*draws, strict=True))
    groups = np.arange(12) % 3
    return Mixing(is_cutmix[groups], lam[groups], boxes[groups])


def test_each_groups_images_and_smoothed_loss_are_mixed_as_by_timm_in_a_process_of_its_own(images):
    draws = [(False, 0.3, (0, 0, 0, 0)), (True, 1 - 12 * 24 / 48**2, (4, 8, 12, 24)), (False, 1.0, (0, 0, 0, 0))]
    mixed, targets = mix_(images.float(), LABELS, pair_images(mixing_of(*draws)), 10)
    logits = torch.randn(12, 10, generator=torch.Generator().manual_seed(0))
    losses = []
    for process, (is_cutmix, lam, (top, left, height, width)) in enumerate(draws):
        held = torch.arange(process, 12, 3)  # by a process of three
        own = images[held].float()
        partner = own[[2, 3, 0, 1]]
        expected = own * lam + partner * (1 - lam)
        if is_cutmix:
            expected = own.clone()
            expected[:, :, top : top + height, left : left + width] = partner[
                :, :, top : top + height, left : left + width
            ]
        torch.testing.assert_close(mixed[held], expected)
        losses.append(smoothed_timm_loss(logits, held[[0, 1, 3, 2]], lam, 0.1))
    ours = F.cross_entropy(logits, targets, label_smoothing=0.1)
    torch.testing.assert_close(ours, torch.stack(losses).mean())


def test_an_odd_share_is_refused(images, make_samples):
    with pytest.raises(SpecError, match="multiple of twice the number of ranks"):
        augment(DEIT, images[:5], LABELS[:5], make_samples(5))
