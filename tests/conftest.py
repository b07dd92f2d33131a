"""Set-up that all tests share."""

import multiprocessing.forkserver
import os
import signal
from unittest.mock import patch

import pytest
import torch

from launchers.local.pool import environment_of_runs
from suite.base.torchvision_ops import make_torchvision_importable
from suite.spec.resources import Resources

make_torchvision_importable()  # tests import timm directly, to compare with it
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes, which share the cores
    torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores Ctrl-C, and so would its commands

_LIBRARIES = ["suite.training.loop", "suite.training.measure.untrained", "deepspeed", "pytest"]
_FORKED = """
import os, sys
os.environ |= variables
output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for stream in (1, 2):
    os.dup2(output, stream)
sys.argv = ["-c", *arguments]
exec(program, {"__name__": "__main__"})
"""

_RUN = """
import os, sys
from pathlib import Path
from suite.execute import run, run_as_rank
from suite.spec.resources import Resources
train = run_as_rank if "RANK" in os.environ else run
sys.exit(train(Path(sys.argv[1]), Resources.model_validate_json(sys.argv[2])))
"""


def pytest_xdist_auto_num_workers():
    """One process more than cores, as a third of the tests' time is waiting; at most 8, for their memory."""
    return min(8, (os.cpu_count() or 1) + 1)


@pytest.fixture(scope="session")
def fork():
    """Starts Python programs in processes of their own, forked from one that has the libraries loaded.

    Each would else load them anew, for five seconds of a core. They end with the tests at the latest.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LIBRARIES)
    with patch.dict(os.environ, {**environment_of_runs(Resources()), "DS_ACCELERATOR": "cpu"}, clear=True):
        multiprocessing.forkserver.ensure_running()

    def fork(program, *arguments, log=os.devnull, **variables):
        names = {"program": program, "arguments": [*map(str, arguments)], "log": str(log), "variables": variables}
        process = context.Process(target=exec, args=(_FORKED, names), daemon=True)
        process.start()
        return process

    return fork


@pytest.fixture(scope="session")
def ranks():
    """Variables by which so many ranks find each other: at a store of this process, so that no port is guessed."""
    stores = []

    def ranks(num_ranks):
        stores.append(torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(stores[-1].port), "WORLD_SIZE": str(num_ranks)}
        place |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}  # as torchrun does
        return [{**place, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(num_ranks)]

    return ranks


@pytest.fixture(scope="session")
def start(fork, ranks):
    """Starts runs in processes of their own, as a grid and as nodes do."""

    def start(run, resources, before="", by_rank=True):
        """Give the process of each rank that nodes start, or that of a run which starts its ranks by torchrun.

        Code that is carried out before changes what each process finds.
        """
        places = ranks(resources.num_ranks) if by_rank and resources.num_ranks > 1 else [{}]
        options = (run.path, resources.model_dump_json())
        return [fork(before + _RUN, *options, log=run.log_path, **place) for place in places]

    return start


_SLOW = ("tests/integration", "tests/faults", "tests/training", "tests/launchers", "tests/test_package")  # they train


def pytest_collection_modifyitems(items):
    """Put slow files first, so that processes which share them end together; skip what needs a GPU where there is none.

    pytest-xdist's own order, the files with the most tests first, would keep the longest for the end.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(_SLOW))
    if not torch.cuda.is_available() and os.environ.get("GPU_TESTS_ON") != "cpu":
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU, and torch sees none"))
