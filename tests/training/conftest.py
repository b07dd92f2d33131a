"""Fixtures for tests of trainings: a process group for an engine, and runs in processes of their own."""

import os
from unittest.mock import patch

import pytest
import torch

from suite.spec.resources import Resources
from suite.training import distributed

RESOURCES = Resources()


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


@pytest.fixture(scope="session")
def execute(start):
    """Carries a run out in processes of its own, and gives the exit status of each rank."""

    def execute(run, resources=RESOURCES, before=""):
        processes = start(run, resources, before)
        for process in processes:
            process.join(600)
        return [process.exitcode for process in processes]

    return execute
