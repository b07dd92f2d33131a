"""Set-up that all tests share."""

import os

import pytest
import torch

from suite.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # tests import timm directly, to compare with it
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes, which share the cores
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    """Skip what needs a GPU where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU, and torch sees none"))
