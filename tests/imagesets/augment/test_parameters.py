"""Crops, boxes and mixing against timm's own code, fed with the same uniform numbers."""

import numpy as np
import pytest
import scipy.stats
import timm.data.mixup
import timm.data.random_erasing
import timm.data.transforms
import torch
from PIL import Image
from scipy.special import betaincinv

from imagesets.augment.parameters import (
    erasing_boxes,
    flips,
    mixing,
    padded_crops,
    resized_bilinearly,
    resized_crops,
)
from imagesets.randomness import Purpose, Samples, uniforms


class Replay:
    """Stands for the module ``random`` in timm, and answers from our draws, four per attempt."""

    def __init__(self, attempts, first=0.0):
        self.attempts, self.first, self.next = attempts, first, 0

    def random(self):
        return self.first

    def uniform(self, low, high):
        if self.next % 4 == 2:  # the last attempt did not fit, so it asked for no place
            self.next += 2
        return low + (high - low) * self._draw()

    def randint(self, low, high):
        return low + int(self._draw() * (high - low + 1))

    def _draw(self):
        self.next += 1
        return self.attempts[self.next - 1]


@pytest.mark.parametrize("size", [(375, 500), (500, 333), (32, 32), (60, 500), (3000, 40)])
def test_a_resized_crop_is_timms_for_the_same_draws(size, make_samples, monkeypatch):
    samples = make_samples(100)
    boxes = resized_crops(1, samples, np.full((100, 2), size))
    picture = Image.new("L", size[::-1])
    for box, draws in zip(boxes, uniforms(1, Purpose.RESIZED_CROP, samples, 40), strict=True):
        monkeypatch.setattr(timm.data.transforms, "random", Replay(draws))
        timms = timm.data.transforms.RandomResizedCropAndInterpolation.get_params(picture, (0.08, 1.0), (3 / 4, 4 / 3))
        assert tuple(box) == timms


def test_resized_crops_take_a_size_of_each_image_and_lie_within_it(make_samples):
    sizes = np.random.default_rng(0).integers(1, 600, (5000, 2)).astype(np.int32)
    top, left, height, width = resized_crops(0, make_samples(5000), sizes).T
    assert min(top.min(), left.min()) == 0
    assert min(height.min(), width.min()) >= 1
    assert (top + height <= sizes[:, 0]).all()
    assert (left + width <= sizes[:, 1]).all()


def test_padded_crops_and_flips_are_those_of_published_results(make_samples):
    samples = make_samples(1000)
    corners = padded_crops(3, samples, 8)
    assert np.array_equal(corners, np.floor(uniforms(3, Purpose.CROP, samples)[:, :2] * 9))
    assert np.bincount(corners.ravel()) / 2000 == pytest.approx([1 / 9] * 9, abs=0.02)
    assert np.array_equal(flips(3, samples, 0.3), uniforms(3, Purpose.FLIP, samples)[:, 0] < 0.3)


@pytest.mark.parametrize("size", [64, 8])
def test_an_erased_box_is_timms_for_the_same_draws(size, make_samples, monkeypatch):
    samples = make_samples(80)
    boxes = erasing_boxes(1, samples, 0.5, size)
    for box, draws in zip(boxes, uniforms(1, Purpose.ERASING, samples, 44), strict=True):
        monkeypatch.setattr(timm.data.random_erasing, "random", Replay(draws[4:], first=draws[0]))
        erased = torch.full((1, size, size), 9.0)
        timm.data.random_erasing.RandomErasing(0.5, mode="pixel", device="cpu")(erased)
        ours = torch.zeros(size, size, dtype=torch.bool)
        top, left, height, width = box
        ours[top : top + height, left : left + width] = True
        assert torch.equal(erased[0] != 9, ours)


@pytest.mark.parametrize("alphas", [(0.8, 1.0), (0.8, 0.0), (0.0, 1.0)])
def test_mixing_is_timms_for_the_same_draws_of_each_group(alphas, monkeypatch):
    timms = timm.data.mixup.Mixup(*alphas, switch_prob=0.5, label_smoothing=0)
    groups = np.arange(8) % 4
    for step in range(10):
        ours = mixing(5, step, groups, *alphas, 0.5, 32)  # type: ignore[call-arg]
        draws = uniforms(5, Purpose.MIXING, Samples(np.zeros(4, int), np.full(4, step), np.arange(4)))
        for image, group in enumerate(groups):
            switch, share, *center = draws[group]
            places, rand = iter(center), iter([0.0, switch])
            monkeypatch.setattr(np.random, "rand", lambda rand=rand: next(rand))
            monkeypatch.setattr(np.random, "beta", lambda a, b, share=share: betaincinv(a, b, share))
            monkeypatch.setattr(np.random, "randint", lambda low, high, size, places=places: int(high * next(places)))
            x = torch.stack([torch.zeros(3, 32, 32), torch.ones(3, 32, 32)])
            mixed, target = timms(x, torch.tensor([0, 1]))
            top, left, height, width = ours.boxes[image]
            expected = torch.zeros(32, 32)
            expected[top : top + height, left : left + width] = 1
            if not ours.is_cutmix[image]:
                expected = torch.full((32, 32), 1 - ours.lam[image])
            torch.testing.assert_close(mixed[0, 0], expected)
            torch.testing.assert_close(target[0, 0].item(), ours.lam[image])


def test_shares_follow_their_beta_distributions_and_cutmix_its_odds():
    drawn = mixing(0, 0, np.arange(1500), 0.8, 1.0, 0.25, 10_000)
    assert drawn.is_cutmix.mean() == pytest.approx(0.25, abs=0.03)
    assert scipy.stats.kstest(drawn.lam[~drawn.is_cutmix], scipy.stats.beta(0.8, 0.8).cdf).pvalue > 0.01


def test_the_first_group_of_a_step_is_drawn_as_a_batch_of_one_group_is():
    alone, several = (mixing(3, 7, groups, 0.8, 1.0, 0.5, 32) for groups in (np.zeros(6, int), np.arange(6) % 3))
    for one, many in zip(alone, several, strict=True):
        assert np.array_equal(one[::3], many[::3])
        assert not np.array_equal(one, many)


@pytest.mark.parametrize(
    "draw",
    [
        lambda s: resized_crops(0, s, np.full((len(s.index), 2), 300)),
        lambda s: padded_crops(0, s, 8),
        lambda s: flips(0, s, 0.5),
        lambda s: resized_bilinearly(0, s),
        lambda s: erasing_boxes(0, s, 0.5, 32),
    ],
)
def test_a_samples_draw_does_not_depend_on_its_batch_but_on_its_repeat(draw, make_samples):
    whole = draw(make_samples(50))
    part = draw(Samples(*(field[20:30] for field in make_samples(50))))
    assert np.array_equal(whole[20:30], part)
    assert not np.array_equal(whole, draw(make_samples(50, repeat=1)))
