"""Real pictures to augment, and samples to draw for."""

import numpy as np
import pytest
import torch
from PIL import Image

from imagesets.fetch import ensure
from imagesets.fetch.storage import open_arrays
from imagesets.randomness import Samples


@pytest.fixture(scope="session")
def pictures():
    """Twelve photographs as Pillow images of 48 pixels."""
    arrays = open_arrays(ensure("cifar10_sample"))["train_images"][:12]
    return [Image.fromarray(np.array(array)).resize((48, 48), Image.Resampling.BICUBIC) for array in arrays]


@pytest.fixture(scope="session")
def images(pictures):
    """The same, (12, 3, 48, 48) uint8."""
    return torch.from_numpy(np.stack([np.array(picture) for picture in pictures])).permute(0, 3, 1, 2).contiguous()


@pytest.fixture
def make_samples():
    def make(num, epoch=2, repeat=0):
        return Samples(np.full(num, epoch), np.arange(num), np.full(num, repeat))

    return make


@pytest.fixture(autouse=True)
def one_thread():
    """Several threads gain nothing on small pictures, and lose much where other tests run beside these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
