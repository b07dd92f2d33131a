"""Kills of a process between any two of its system calls, and processes of their own for what leaves engines behind.

A process is traced from the moment its commit begins, and killed as it enters its n-th system call. What it leaves must
be the state before or after, whole, and the next process must come to the same end as an undisturbed one.
"""

import ctypes
import functools
import multiprocessing
import os
import signal
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from campaign import Tally, leave_out

_TRACE_ME, _TO_NEXT_STOP = 0, 24  # PTRACE_TRACEME, PTRACE_SYSCALL
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def alone(function, *arguments):
    """Call a function in a process that is forked from one with the libraries loaded; gives what it returns."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as processes:
        return processes.submit(function, *arguments).result()


def run_alone(task, folder):
    """Carry a task out in a process forked from this one, without its threads; returns whether it ended well.

    A task works in a folder, and calls what else it is given as its commit begins.
    """
    return os.waitpid(_fork(task, folder, lambda: None), 0)[1] == 0


def kill_at(call, task, folder):
    """Carry a task out as `run_alone` does, and kill it as it enters this system call of its commit, counted from 1.

    Gives how many system calls it was seen to enter, and whether it ended well; a call of None kills it never.
    """
    process = _fork(task, folder, _be_traced)
    _, status = os.waitpid(process, os.WUNTRACED)
    num_stops = -1  # each call stops twice, as it begins and as it ends; before them, the process stops itself
    while os.WIFSTOPPED(status):
        num_stops += 1
        if call is not None and num_stops == 2 * call - 1:
            os.kill(process, signal.SIGKILL)
        elif _LIBC.ptrace(_TO_NEXT_STOP, process, None, None):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            leave_out("this machine lets no process be traced")
        _, status = os.waitpid(process, 0)
    return (num_stops + 1) // 2, os.waitstatus_to_exitcode(status) == 0


def _be_traced():
    _LIBC.ptrace(_TRACE_ME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)


def _fork(task, folder, begin):
    process = os.fork()
    if process:
        return process
    try:
        with (folder / "log.txt").open("a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        task(folder, begin)
        _LIBC._exit(0)  # not `os._exit`, where a coverage measurement would add system calls of its own
    except BaseException:
        traceback.print_exc()
    finally:
        _LIBC._exit(1)


def attack(commit, go_on, find_end, num, draw, folder):
    """Kill so many commits at random system calls, each in a folder of its own, and go on after each.

    `commit` is the task that is killed, `go_on` that of the next process in the same folder; `find_end` gives what that
    has come to, to be compared with an undisturbed one.
    """
    num_calls, expected = _undisturbed(commit, go_on, find_end)
    tally = Tally()
    for number in range(num):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            call, place = draw.randint(1, num_calls), Path(name)
            _, was_done = kill_at(call, commit, place)
            resumed = run_alone(go_on, place)
            equal = resumed and find_end(place) == expected
            tally.judge(not was_done, resumed, equal, f"kill {number} at call {call} of {num_calls}")
    return tally


@functools.cache
def _undisturbed(commit, go_on, find_end):
    with tempfile.TemporaryDirectory() as name:
        num_calls, was_done = kill_at(None, commit, Path(name))
        was_done = was_done and run_alone(go_on, Path(name))
        assert was_done, (Path(name) / "log.txt").read_text()
        return num_calls, find_end(Path(name))
