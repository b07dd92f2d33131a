"""Normalizing a part of a batch at a time gives what doing all of it at once gives, bit by bit."""

import numpy as np
import pytest
import torch

from imagesets.augment.pipeline import Augmentation, mirror_images
from suite.papers.shared.deit_recipes import DEIT_LAPTOP

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


@pytest.mark.parametrize(("number", "size"), [(50, 32), (3, 224), (1, 256)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_every_part_is_mirrored_and_normalized_as_the_whole_batch(number, size, layout):
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(256, size=(number, 3, size, size), dtype=np.uint8))
    turned = torch.from_numpy(np.arange(number) + number * (rng.random(number) < 0.5))
    mean, std = torch.tensor([MEAN, STD]).reshape(2, 3, 1, 1) * 255
    expected = (mirror_images(images, turned).float() - mean) / std
    given = images.contiguous(memory_format=layout)
    found = Augmentation(DEIT_LAPTOP, 0, MEAN, STD, 10).normalize(given, turned)
    assert torch.equal(found, expected)
    assert found.is_contiguous()
    assert torch.equal(given, images)
