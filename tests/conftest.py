"""Set-up that all tests share."""

import os

import pytest
import torch

from suite.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # tests import timm directly, to compare with it
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes, which share the cores
    torch.set_num_threads(1)

_LINEAR = torch.nn.functional.linear


@pytest.fixture(autouse=True)
def _linear_stays_torchs():
    """DeepSpeed's stage 3 leaves a linear of its own behind, which fails on empty layers."""
    yield
    torch.nn.functional.linear = _LINEAR


_SLOW = ("tests/integration", "tests/faults", "tests/training", "tests/launchers", "tests/test_package")  # they train


def pytest_collection_modifyitems(items):
    """Put slow files first, so that processes which share them end together; skip what needs a GPU where there is none.

    pytest-xdist's own order, the files with the most tests first, would keep the longest for the end.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(_SLOW))
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU, and torch sees none"))
