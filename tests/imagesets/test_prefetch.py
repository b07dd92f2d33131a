"""Threads that cannot start end the run at once, with the reason."""

import subprocess
import sys

import pytest

from imagesets.prefetch import start_threads
from suite.base.errors import RunError

IN_LITTLE_MEMORY = """
import resource, sys, threading
from pathlib import Path
from imagesets.prefetch import start_threads

stack = 2**30
threading.stack_size(stack)
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 3 * stack // 2,) * 2)
start_threads(2, "load")
"""


def test_a_process_with_room_for_one_thread_of_two_ends_at_once_and_says_what_it_lacks():
    done = subprocess.run([sys.executable, "-c", IN_LITTLE_MEMORY], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "RunError: the 2 threads that load images cannot be started: can't start new thread" in done.stderr


def test_a_thread_that_ends_in_its_first_call_is_no_hang(monkeypatch):
    def fail(number):
        raise MemoryError

    monkeypatch.setattr("torch.set_num_threads", fail)
    with pytest.raises(RunError, match="the 2 threads that load images cannot be started"):
        start_threads(2, "load")
