"""What tests of an engine need: a process group."""

import os
from unittest.mock import patch

import pytest
import torch

from suite.spec import Resources
from suite.training import distributed


@pytest.fixture(scope="session")
def last_group():
    """Left at the very end: DeepSpeed knows the groups of the first one only."""
    yield
    distributed.stop()


@pytest.fixture(scope="module")
def process_group(last_group):
    """Of this process alone; what it sets for the process is set back."""
    threads = torch.get_num_threads()
    with patch.dict(os.environ):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        yield distributed.start(Resources(zero_stage=1))  # a rank alone at stage 0 has no group
    torch.backends.cudnn.allow_tf32 = True
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
