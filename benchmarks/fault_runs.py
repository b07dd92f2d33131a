"""Faults that strike a run from outside, at a random moment of one of its phases: signals, limits, locks, clocks.

A run is started, struck, started again by the same command, and compared with one that nothing has disturbed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fault_counts import Counts, Fault, judge

from suite.base.exit_codes import Exit
from suite.papers.shared.deit import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store import heartbeat
from suite.store.heartbeat import Watch, read_beat
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status, reopen

_RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 15.0, "batch_size": 32, "drop_path": 0.2, "warmup_epochs": 1.5})
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=_RECIPE)
_NUM_STEPS = 150
PHASES: dict[str, str] = {
    "training": "training",
    "checkpoint": "checkpoint",
    "evaluation": "evaluation",
    "result": "end",
}
_LIMIT_S = 1200.0  # for one attempt, which takes seconds where a core is idle
_PATIENCE_S = 8.0  # of the watch, with runs whose steps take 0.02 s
_DAY_S = 86_400.0
_TIMES = ("images_per_s", "data_wait_percent")
_SMALL_FILE = 2_000  # bytes: room for a failure and a line of metrics, none for a checkpoint

Run = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Target:
    """A run that trains: its process, the one of its ranks that is to be struck, and a watch beside it."""

    run: RunDirectory
    process: Run
    victim: int
    watch: Watch


Strike = Callable[[Target], contextlib.AbstractContextManager[None]]


def start(run: RunDirectory, num_ranks: int) -> Run:
    """Start a run as the grid does, but as a user whom a folder's rights bind, as they do not bind root."""
    resources = Resources(num_ranks=num_ranks, checkpoint_every_s=0.1, num_evaluations=10)
    command = [sys.executable, "-m", "suite.execute", str(run.path), "--resources", resources.model_dump_json()]
    with run.log_path.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, preexec_fn=_obey_rights)


def _obey_rights() -> None:
    drop_from_bounding_set, overrides = 24, (1, 2)  # PR_CAPBSET_DROP; CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    for capability in overrides:
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def outcome(run: RunDirectory) -> tuple[Any, ...]:
    """All of a finished run that must not depend on what disturbed it."""
    result = run.read_result()
    if result is None:
        return ()
    metrics = [{key: value for key, value in line.items() if key not in _TIMES} for line in run.read_metrics()]
    numbers = (result.top1_percent, result.top5_percent, result.test_loss, result.best_top1_percent)
    return (result.weights_sha256, numbers, result.num_evaluations, result.mean_nonlocality, json.dumps(metrics))


@functools.cache
def undisturbed(num_ranks: int) -> tuple[Any, ...]:
    """The outcome of a run that is left alone."""
    with tempfile.TemporaryDirectory() as folder:
        run = _make(Path(folder))
        code = start(run, num_ranks).wait(_LIMIT_S)
        if code:
            raise RuntimeError(f"the undisturbed run ended with {code}:\n{run.log_path.read_text(encoding='utf-8')}")
        return outcome(run)


def _make(folder: Path) -> RunDirectory:
    run = RunDirectory.of(folder, EXPERIMENT)
    run.create(EXPERIMENT)
    return run


def disturb(strike: Strike, phase: str, num_ranks: int, draw: Random, folder: Path) -> Counts:
    """Strike one run in one phase, start it again and compare.

    Args:
        strike: the fault.
        phase: one of ``PHASES``.
        num_ranks: of the run.
        draw: says when in the phase, and which process.
        folder: the run store.
    """
    run, expected = _make(folder), undisturbed(num_ranks)
    watch, process = Watch(run), start(run, num_ranks)
    try:
        if not _wait_for(run, process, PHASES[phase], draw.randrange(10, _NUM_STEPS * 3 // 4)):
            return Counts()  # it was over before: nothing was injected
        time.sleep(draw.random() * 0.03)
        victim = draw.choice(_processes_of(run, num_ranks) or [process.pid])
        with strike(Target(run, process, victim, watch)):
            code = _wait_beside(process, watch)
    except subprocess.TimeoutExpired:
        return Counts(1, lost=1, stories=(f"{folder}: hangs",))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    code_of_second = _go_on(run, num_ranks)
    story = f"{phase}, {num_ranks} ranks: ended with {code}, then with {code_of_second}; {_last_line(run)}"
    return judge(code != 0, code_of_second == 0 and run.result_path.exists(), outcome(run) == expected, story)


def _wait_beside(process: Run, watch: Watch) -> int:
    """Wait for the end as the pool does: what the watch finds hanging is killed, and goes on from its checkpoint."""
    heartbeat.LEAST_PATIENCE_S, heartbeat.UNKNOWN_PATIENCE_S = _PATIENCE_S, 2 * _PATIENCE_S
    ends = time.monotonic() + _LIMIT_S
    while process.poll() is None and time.monotonic() < ends:
        if watch.find_hang():
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()
        time.sleep(0.1)
    return process.wait(0)


def _go_on(run: RunDirectory, num_ranks: int) -> int | None:
    """The same command again, with --retry-failed where the run has failed; None for one that hangs."""
    ends = time.monotonic() + 30
    while run.is_claimed() and time.monotonic() < ends:  # the ranks die with their parent, a moment later
        time.sleep(0.01)
    reopen(run, read_run_status(run, {}))
    process = start(run, num_ranks)
    try:
        return process.wait(_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _wait_for(run: RunDirectory, process: Run, phase: str, step: int) -> bool:
    """Wait until the run is in this phase, at this step at least; False if it ends before.

    Raises:
        TimeoutExpired: if it hangs.
    """
    ends = time.monotonic() + _LIMIT_S
    while process.poll() is None:
        if time.monotonic() > ends:
            raise subprocess.TimeoutExpired(process.args, _LIMIT_S)
        beat = read_beat(run)
        if beat is not None and beat.phase == phase and beat.step >= step:
            return True
        time.sleep(0.001)
    return False


def _processes_of(run: RunDirectory, num_ranks: int) -> list[int]:
    """The ranks' processes, where there are several."""
    found = []
    for folder in Path("/proc").glob("[0-9]*") if num_ranks > 1 else ():
        with contextlib.suppress(OSError):
            if str(run.path).encode() in (folder / "cmdline").read_bytes():
                is_rank = b"\0RANK=" in (folder / "environ").read_bytes()
                found += [int(folder.name)] * is_rank
    return sorted(found)


def _last_line(run: RunDirectory) -> str:
    return (run.log_path.read_text(errors="replace", encoding="utf-8").strip().splitlines() or [""])[-1][:200]


def _send(number: signal.Signals, to_all: bool = False) -> Strike:
    @contextlib.contextmanager
    def strike(target: Target) -> Iterator[None]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(target.process.pid if to_all else target.victim, number)
        yield

    return strike


def _limit(kind: int, find_limit: Callable[[int], int]) -> Strike:
    @contextlib.contextmanager
    def strike(target: Target) -> Iterator[None]:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            limit = find_limit(target.victim)
            resource.prlimit(target.victim, kind, (limit, limit))
        yield

    return strike


def _memory_of(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def _make_read_only(target: Target) -> Iterator[None]:
    folders = [path for path in (target.run.path, target.run.checkpoint_path) if path.exists()]
    for path in folders:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o755) if path.exists() else None


@contextlib.contextmanager
def _put_folder_in_place_of_metrics(target: Target) -> Iterator[None]:
    metrics, kept = target.run.metrics_path, target.run.path / "metrics.kept"
    metrics.rename(kept)
    with contextlib.suppress(FileExistsError):  # the run was faster
        metrics.mkdir()
    try:
        yield
    finally:
        if metrics.is_dir():
            metrics.rmdir()
            kept.rename(metrics)


def _kill(target: Target) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(target.process.pid, signal.SIGKILL)
    target.process.wait()


@contextlib.contextmanager
def _kill_and_hold_the_lock(target: Target) -> Iterator[None]:
    """Start the run once more while this process holds its claim: that must end at once, and touch nothing."""
    _kill(target)
    with target.run.claim(timeout_s=30.0):
        before = _list_files(target.run)
        code = start(target.run, 1).wait(_LIMIT_S)
        if (code, _list_files(target.run)) != (Exit.LOCKED, before):
            raise RuntimeError(f"a run that is held ended with {code}, with {_list_files(target.run)} of {before}")
    yield


def _list_files(run: RunDirectory) -> list[str]:
    return sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))


@contextlib.contextmanager
def _kill_and_set_the_clock_back(target: Target) -> Iterator[None]:
    """The machine's clock is left alone: what the run has left behind gets the times of one that was a day ahead."""
    _kill(target)
    lines = [json.loads(line) for line in target.run.attempts_path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line |= {name: value + _DAY_S for name, value in line.items() if name.endswith("_at")}
    target.run.attempts_path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for path in target.run.path.rglob("*"):
        os.utime(path, (time.time() + _DAY_S,) * 2)
    yield


STRIKES: dict[str, Strike] = {
    "exception": _put_folder_in_place_of_metrics,
    "SIGKILL": _send(signal.SIGKILL),
    "SIGTERM": _send(signal.SIGTERM, to_all=True),
    "SIGSTOP": _send(signal.SIGSTOP),
    "SIGSEGV": _send(signal.SIGSEGV),
    "SIGABRT": _send(signal.SIGABRT),
    "lock held": _kill_and_hold_the_lock,
    "disk full": _limit(resource.RLIMIT_FSIZE, lambda process: _SMALL_FILE),
    "read-only folder": _make_read_only,
    "no memory": _limit(resource.RLIMIT_AS, _memory_of),
    "clock set back": _kill_and_set_the_clock_back,
}
_IN_TESTS = {("SIGSEGV", "training", 1), ("disk full", "training", 1)}  # those of two ranks take three times as long


def faults() -> list[Fault]:
    """All strikes, in all phases, with one rank and two."""
    return [
        Fault(
            f"{name}, {phase}, {num_ranks} rank{'s' * (num_ranks > 1)}",
            functools.partial(disturb, strike, phase, num_ranks),
            rounds=8 if name == "SIGKILL" else 3,
            rounds_in_tests=int((name, phase, num_ranks) in _IN_TESTS),
        )
        for num_ranks in (1, 2)
        for phase in PHASES
        for name, strike in STRIKES.items()
    ]
