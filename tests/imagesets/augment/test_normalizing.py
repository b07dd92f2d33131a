"""Normalizing a part of a batch at a time gives what doing all of it at once gives, bit by bit."""

import numpy as np
import pytest
import torch

from imagesets.augment.pipeline import mirror_images, normalize_on_cpu
from imagesets.buffer_pool import BufferPool

MEAN, STD = torch.tensor([125.3, 122.9, 113.8]).reshape(3, 1, 1), torch.tensor([63.0, 62.1, 66.7]).reshape(3, 1, 1)


@pytest.mark.parametrize(("number", "size"), [(50, 32), (3, 224), (1, 256)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_every_part_is_mirrored_and_normalized_as_the_whole_batch(number, size, layout):
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(256, size=(number, 3, size, size), dtype=np.uint8))
    turned = torch.from_numpy(np.arange(number) + number * (rng.random(number) < 0.5))
    expected = (mirror_images(images, turned).float() - MEAN) / STD
    given = images.contiguous(memory_format=layout)
    found = normalize_on_cpu(given, MEAN, STD, turned, BufferPool())
    assert torch.equal(found, expected)
    assert found.is_contiguous()
    assert torch.equal(given, images)
