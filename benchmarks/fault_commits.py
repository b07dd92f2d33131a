"""Kills between any two system calls of a commit: of a checkpoint, of a result, or of the removal of checkpoints.

A process is traced from the moment its commit begins, and killed as it enters its n-th system call. What it leaves must
be the state before or after, whole, and the next process must come to the same end as an undisturbed one.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from fault_counts import Counts, Fault, LeftOutError, judge
from fault_records import EXPERIMENT, make_begun_run, make_result

from suite.base.files import sha256_of
from suite.models.registry import build_model
from suite.papers.shared.deit import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status
from suite.training import checkpoint, distributed
from suite.training.checkpoint_files import CheckpointManifest, Layout, Origin
from suite.training.optim import build_optimizer

_TRACE_ME, _TO_NEXT_STOP = 0, 24  # PTRACE_TRACEME, PTRACE_SYSCALL
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_RECIPE = DEIT_LAPTOP.model_copy(update={"batch_size": 8})
_ORIGIN = Origin(experiment="deit_micro-0/seed-0")
_COMMITTED, _LAST = 3, 4  # steps: the one whose checkpoint is killed, and that at which weights are compared

Begin = Callable[[], None]
Task = Callable[[Path, Begin], None]  # works in a folder, and calls ``Begin`` as its commit begins


def kill_at(call: int | None, task: Task, folder: Path) -> tuple[int, bool]:
    """Carry a task out in a process of its own, and kill that as it enters a system call of its commit.

    Args:
        call: counted from 1; None kills it never.

    Returns:
        how many system calls it was seen to enter, and whether it ended well.

    Raises:
        LeftOutError: no process may be traced here.
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
            raise LeftOutError("this machine lets no process be traced")
        _, status = os.waitpid(process, 0)
    return (num_stops + 1) // 2, os.waitstatus_to_exitcode(status) == 0


def run_alone(task: Task, folder: Path) -> bool:
    """Carry a task out in a process of its own; returns whether it ended well."""
    return os.waitpid(_fork(task, folder, lambda: None), 0)[1] == 0


def _be_traced() -> None:
    _LIBC.ptrace(_TRACE_ME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)


def _fork(task: Task, folder: Path, begin: Begin) -> int:
    """The process, which has no engine or process group from here: threads do not outlive a fork."""
    process = os.fork()
    if process:
        return process
    try:
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        task(folder, begin)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def attack(
    commit: Task, go_on: Task, find_end: Callable[[Path], object], num: int, draw: Random, folder: Path
) -> Counts:
    """Kill commits at random system calls, each in a folder of its own, and go on after each.

    Args:
        commit: what is killed.
        go_on: the next process, in the same folder.
        find_end: what that has come to, to be compared with an undisturbed one.
        num: kills.
    """
    num_calls, expected = _undisturbed(commit, go_on, find_end)
    total = Counts()
    for number in range(num):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            call, place = draw.randint(1, num_calls), Path(name)
            _, was_done = kill_at(call, commit, place)
            resumed = run_alone(go_on, place)
            found = find_end(place) if resumed else None
            total += judge(not was_done, resumed, found == expected, f"kill {number} at call {call} of {num_calls}")
    return total


@functools.cache
def _undisturbed(commit: Task, go_on: Task, find_end: Callable[[Path], object]) -> tuple[int, object]:
    with tempfile.TemporaryDirectory() as name:
        num_calls, was_done = kill_at(None, commit, Path(name))
        if not (was_done and run_alone(go_on, Path(name))):
            raise RuntimeError(f"undisturbed, it ends badly: {(Path(name) / 'log.txt').read_text(encoding='utf-8')}")
        return num_calls, find_end(Path(name))


def _engine(seed: int) -> tuple[distributed.Ranks, object]:
    ranks = distributed.start(Resources())
    torch.manual_seed(seed)
    model = build_model("deit_micro", num_classes=10, image_size=32, dim=18, depth=1)
    optimizer = build_optimizer(model, _RECIPE, torch.device("cpu"))
    return ranks, distributed.initialize(model, optimizer, _RECIPE, Resources())


def _take_step(engine) -> None:  # type: ignore[no-untyped-def]  # DeepSpeed's
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(engine.global_steps))
    engine.backward(F.cross_entropy(engine(images).float(), torch.arange(8)))
    engine.step()


def commit_checkpoint(folder: Path, begin: Begin) -> None:
    """Three steps with a checkpoint after each; the commit is the third one."""
    ranks, engine = _engine(seed=0)
    run = RunDirectory(folder)
    for step in range(1, _COMMITTED + 1):
        _take_step(engine)
        if step == _COMMITTED:
            begin()
        checkpoint.save(engine, run, ranks, Resources(), _ORIGIN, step, {"step": step})


def go_on_from_checkpoint(folder: Path, begin: Begin) -> None:
    """Another network goes on from the newest checkpoint, and leaves the digest of its weights."""
    ranks, engine = _engine(seed=1)
    run = RunDirectory(folder)
    step = checkpoint.load_newest(engine, run, ranks, Resources(), _ORIGIN)["step"]
    if step not in (_COMMITTED - 1, _COMMITTED):
        raise RuntimeError(f"went on from step {step}")
    for _ in range(step, _LAST):
        _take_step(engine)
    checkpoint.save(engine, run, ranks, Resources(), _ORIGIN, _LAST, {"step": _LAST})
    if sorted(path.name for path in run.checkpoint_path.iterdir()) != [f"step-{step}", f"step-{_LAST}"]:
        raise RuntimeError(f"left {sorted(run.checkpoint_path.iterdir())}")
    weights = distributed.full_state_dict(engine, 0)
    digest = hashlib.sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest()
    (folder / "digest").write_text(digest, encoding="utf-8")


def commit_removal(folder: Path, begin: Begin) -> None:
    """Four checkpoints of files, the links and folders of somebody else beside them; the commit drops all but one."""
    run = RunDirectory(folder)
    for step in range(1, 5):
        written = run.checkpoint_at(step)
        (written / "deeper").mkdir(parents=True)
        for name in ("weights", "deeper/state"):
            (written / name).write_bytes(bytes([step]) * 100)
        files = {name: sha256_of(written / name) for name in ("weights", "deeper/state")}
        CheckpointManifest(layout=Layout.of(Resources()), origin=_ORIGIN, files=files).write(written)
    run.set_checkpoint_aside(2)
    (run.checkpoint_path / "step-of-mine").mkdir()
    begin()
    run.drop_checkpoints(num_kept=1)


def go_on_from_removal(folder: Path, begin: Begin) -> None:
    """Every checkpoint that has a complete one's name is whole; then the next save drops what is left."""
    run = RunDirectory(folder)
    for step in run.checkpoint_steps():
        CheckpointManifest.read(run.checkpoint_at(step))
    run.drop_checkpoints(num_kept=1)


def commit_result(folder: Path, begin: Begin) -> None:
    """A run that ends: its weights, then its result, which drops failure and checkpoints."""
    run = make_begun_run(folder)
    run.failure_path.unlink()
    run.checkpoint_at(3).mkdir(parents=True)
    begin()
    _finish(run)


def _finish(run: RunDirectory) -> None:
    digest = checkpoint.save_weights({"weights": torch.arange(1000.0)}, run.weights_path)
    run.write_result(make_result(digest))


def go_on_to_result(folder: Path, begin: Begin) -> None:
    """Do as the next process does: nothing where there is a result, else the same end."""
    run = RunDirectory.of(folder, EXPERIMENT)
    found = read_run_status(run, {})
    if found.state not in ("done", "interrupted"):
        raise RuntimeError(f"{found.state}: {found.reason}")
    if found.state == "interrupted":
        _finish(run)


def _read_digest(folder: Path) -> object:
    return (folder / "digest").read_text(encoding="utf-8")


def _list_checkpoints(folder: Path) -> object:
    return sorted(str(path.relative_to(folder)) for path in RunDirectory(folder).checkpoint_path.rglob("*"))


def _read_end(folder: Path) -> object:
    run = RunDirectory.of(folder, EXPERIMENT)
    return run.read_result(), run.weights_path.read_bytes()


def faults() -> list[Fault]:
    """Kills of the three commits, 10, 50 and 50 a round."""
    checkpoints = functools.partial(attack, commit_checkpoint, go_on_from_checkpoint, _read_digest, 10)
    results = functools.partial(attack, commit_result, go_on_to_result, _read_end, 50)
    removals = functools.partial(attack, commit_removal, go_on_from_removal, _list_checkpoints, 50)
    return [
        Fault("killed between two system calls, removal of checkpoints", removals, rounds=20, rounds_in_tests=1),
        Fault("killed between two system calls, checkpoint", checkpoints, rounds=40, rounds_in_tests=1),
        Fault("killed between two system calls, result", results, rounds=20, rounds_in_tests=1),
    ]
