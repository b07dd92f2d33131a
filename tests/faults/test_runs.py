"""Faults that strike a run from outside, at a random moment of one of its phases: signals, limits, locks, clocks.

A run is started, struck, started again by the same command, and compared with one that nothing has disturbed.
"""

import contextlib
import functools
import json
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

import pytest
from campaign import Fault

from suite.base.exit_codes import Exit
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store import heartbeat
from suite.store.heartbeat import Watchdog, read_beat
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status, reopen

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 15.0, "batch_size": 32, "drop_path": 0.2, "warmup_epochs": 1.5})
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)
NUM_STEPS = 150
PHASES = {"training": "training", "checkpoint": "checkpoint", "evaluation": "evaluation", "result": "end"}
LIMIT_S = 1200.0  # for one attempt, which takes seconds where a core is idle
PATIENCE_S = 8.0  # of the watch, with runs whose steps take 0.02 s
DAY_S = 86_400.0
TIMES = ("images_per_s", "data_wait_percent")
SMALL_FILE = 2_000  # bytes: room for a failure and a line of metrics, none for a checkpoint
GROUP_OF_ITS_OWN = """
import ctypes, os, sys
os.setsid()
libc, overrides = ctypes.CDLL(None), (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: a folder's rights do not bind root
header, held = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, held)
for capability in overrides:
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    held[0] &= ~(1 << capability)
    held[1] &= ~(1 << capability)
libc.capset(header, held)
from suite.execute import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Target:
    """A run that trains: its process, the one of its ranks that is to be struck, and how runs are started."""

    run: RunDirectory
    process: BaseProcess
    victim: int
    start: Callable


def starter(fork):
    """How runs are started: as the grid does, but as a user whom a folder's rights bind."""

    def start(run, num_ranks):
        resources = Resources(num_ranks=num_ranks, checkpoint_every_s=0.1, num_evaluations=10)
        return fork(GROUP_OF_ITS_OWN, run.path, "--resources", resources.model_dump_json(), log=run.log_path)

    return start


def make_run(folder):
    run = RunDirectory.of(folder, EXPERIMENT)
    run.create(EXPERIMENT)
    return run


def kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def wait(process):
    """The exit code; None for a process that hangs, and is killed."""
    process.join(LIMIT_S)
    code = process.exitcode
    kill(process)
    return code


def outcome(run):
    """All of a finished run that must not depend on what disturbed it."""
    result = run.read_result()
    if result is None:
        return None
    metrics = [{key: value for key, value in line.items() if key not in TIMES} for line in run.read_metrics()]
    numbers = (result.top1_percent, result.top5_percent, result.test_loss, result.best_top1_percent)
    return result.weights_sha256, numbers, result.num_evaluations, result.mean_nonlocality, json.dumps(metrics)


@functools.cache
def undisturbed(fork, num_ranks):
    """The outcome of a run that is left alone."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder))
        assert wait(starter(fork)(run, num_ranks)) == 0, run.log_path.read_text()
        return outcome(run)


def disturb(strike, phase, num_ranks, tally, draw, folder, fork):
    """Strike one run of so many ranks in one phase, start it again and compare."""
    expected, run, start = undisturbed(fork, num_ranks), make_run(folder), starter(fork)
    watch, process = Watchdog(run), start(run, num_ranks)
    try:
        if not wait_for(run, process, PHASES[phase], draw.randrange(10, NUM_STEPS * 3 // 4)):
            return  # it was over before: nothing was injected
        time.sleep(draw.random() * 0.03)
        victim = draw.choice(ranks_of(run, num_ranks) or [process.pid])
        code = wait_after(strike, Target(run, process, victim, start), watch)
    except TimeoutError as error:
        tally.add(str(error))
        return
    finally:
        kill(process)
    second = go_on(run, num_ranks, start)
    story = f"{phase}, {num_ranks} ranks: ended with {code}, then with {second}; {run.log_path.read_bytes()[-200:]!r}"
    tally.judge(code != 0, second == 0 and run.result_path.exists(), outcome(run) == expected, story)


def wait_after(strike, target, watch):
    """Strike, wait for the end and undo the strike; gives the exit code."""
    undo = None
    with contextlib.suppress(ProcessLookupError):  # it has ended
        undo = strike(target)
    try:
        return wait_beside(target.process, watch)
    finally:
        if undo is not None:
            undo()


def wait_beside(process, watch):
    """Wait for the end as the pool does: what the watch finds hanging is killed, and goes on from its checkpoint."""
    ends = time.monotonic() + LIMIT_S
    with patch.multiple(heartbeat, LEAST_TIMEOUT_S=PATIENCE_S, UNKNOWN_TIMEOUT_S=2 * PATIENCE_S):
        while process.is_alive():
            if time.monotonic() > ends:
                raise TimeoutError("it hangs after the fault, and the watch does not find it")
            if watch.find_hang():
                kill(process)
            time.sleep(0.1)
    return process.exitcode


def go_on(run, num_ranks, start):
    """The exit code of the same command again, with --retry-failed where the run has failed."""
    ends = time.monotonic() + 30
    while run.is_claimed() and time.monotonic() < ends:  # the ranks die with their parent, a moment later
        time.sleep(0.01)
    reopen(run, read_run_status(run, {}))
    return wait(start(run, num_ranks))


def wait_for(run, process, phase, step):
    """Wait until the run is in this phase, at this step at least; False if it ends before."""
    ends = time.monotonic() + LIMIT_S
    while process.is_alive():
        if time.monotonic() > ends:
            raise TimeoutError("it hangs before the fault")
        beat = read_beat(run)
        if beat is not None and beat.phase == phase and beat.step >= step:
            return True
        time.sleep(0.001)
    return False


def ranks_of(run, num_ranks):
    """The ranks' processes, where there are several."""
    found = []
    for folder in Path("/proc").glob("[0-9]*") if num_ranks > 1 else ():
        with contextlib.suppress(OSError):
            if str(run.path).encode() in (folder / "cmdline").read_bytes():
                is_rank = b"\0RANK=" in (folder / "environ").read_bytes()
                found += [int(folder.name)] * is_rank
    return sorted(found)


def send(number, target):
    os.kill(target.victim, number)


def terminate(target):
    os.kill(target.process.pid, signal.SIGTERM)


def limit_file_size(target):
    resource.prlimit(target.victim, resource.RLIMIT_FSIZE, (SMALL_FILE, SMALL_FILE))


def limit_memory(target):
    """To what the process has by now."""
    with contextlib.suppress(FileNotFoundError):  # it has ended
        held = int(Path(f"/proc/{target.victim}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(target.victim, resource.RLIMIT_AS, (held, held))


def make_read_only(target):
    folders = [path for path in (target.run.path, target.run.checkpoint_path) if path.exists()]
    for path in folders:
        path.chmod(0o555)
    return lambda: [path.chmod(0o755) for path in folders if path.exists()]


def put_folder_in_place_of_metrics(target):
    metrics, kept = target.run.metrics_path, target.run.path / "metrics.kept"
    metrics.rename(kept)
    with contextlib.suppress(FileExistsError):  # the run was faster
        metrics.mkdir()

    def undo():
        if metrics.is_dir():
            metrics.rmdir()
            kept.rename(metrics)

    return undo


def kill_and_hold_the_lock(target):
    """Start the run once more while this process holds its claim: that must end at once, and touch nothing."""
    kill(target.process)
    with target.run.claim(timeout_s=30.0):
        before = sorted(target.run.path.rglob("*"))
        assert wait(target.start(target.run, 1)) == Exit.LOCKED
        assert sorted(target.run.path.rglob("*")) == before


def kill_and_set_the_clock_back(target):
    """The machine's clock is left alone: what the run has left behind gets the times of one that was a day ahead."""
    kill(target.process)
    lines = [json.loads(line) for line in target.run.attempts_path.read_text().splitlines()]
    for line in lines:
        line |= {name: value + DAY_S for name, value in line.items() if name.endswith("_at")}
    target.run.attempts_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in target.run.path.rglob("*"):
        os.utime(path, (time.time() + DAY_S,) * 2)


STRIKES = {  # each may return how it is undone
    "exception": put_folder_in_place_of_metrics,
    "SIGKILL": functools.partial(send, signal.SIGKILL),
    "SIGTERM": terminate,
    "SIGSTOP": functools.partial(send, signal.SIGSTOP),
    "SIGSEGV": functools.partial(send, signal.SIGSEGV),
    "SIGABRT": functools.partial(send, signal.SIGABRT),
    "lock held": kill_and_hold_the_lock,
    "disk full": limit_file_size,
    "read-only folder": make_read_only,
    "no memory": limit_memory,
    "clock set back": kill_and_set_the_clock_back,
}
IN_TESTS = {("SIGSEGV", "training", 1), ("disk full", "training", 1)}  # those of two ranks take three times as long
FAULTS = [
    Fault(
        f"{name}, {phase}, {num_ranks} rank{'s' * (num_ranks > 1)}",
        functools.partial(disturb, strike, phase, num_ranks),
        rounds=8 if name == "SIGKILL" else 3,
        in_tests=int((name, phase, num_ranks) in IN_TESTS),
    )
    for num_ranks in (1, 2)
    for phase in PHASES
    for name, strike in STRIKES.items()
]


@pytest.mark.campaign
def test_a_run_that_is_struck_goes_on_to_the_bits_of_an_undisturbed_one(play, fork):
    play(fork=fork)
