"""``run``: the one function that a node calls. It claims a run directory, trains, and leaves a result or a failure.

``python -m suite.execute RUN_DIRECTORY`` calls it. With several ranks, this process holds the claim and starts them
under torchrun; each rank comes back here with RANK set.

No process can tell that it hangs: whoever starts this one holds a ``suite.store.heartbeat.Watchdog`` beside it, as the
launchers do, or a limit of time. Started by hand, nothing ends it.
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suite.base.endings import ends_in_message
from suite.base.errors import FOREIGN_ERRORS, LostPeerError, RecordError, SuiteError
from suite.base.exit_codes import Exit, describe_signal
from suite.base.files import read_file, write_atomically
from suite.base.reading import read_object
from suite.spec.resources import WAITING_THREADS, Resources
from suite.store import attempts
from suite.store.results import FailureKind
from suite.store.run_directory import RunDirectory
from suite.store.run_status import State, find_run_status

_ENDS: dict[int, attempts.End] = {Exit.DONE: "finished", Exit.INTERRUPTED: "interrupted"}
_RETRY = "; --retry-failed starts it again"
_ENDED: dict[State, tuple[Exit, str]] = {  # what is not to be trained now
    "done": (Exit.DONE, ""),
    "failed": (Exit.LOCKED, _RETRY),
    "void": (Exit.LOCKED, _RETRY),
    "waiting": (Exit.BLOCKED, ""),
    "blocked": (Exit.BLOCKED, ""),
}
_UNWATCHED = (
    "A run that is started by hand is not watched: if it hangs, nothing ends it. launchers/grid.py watches its runs."
)
_CLAIM_TIMEOUT_S = 1.0  # a grid that only looks whether a run is claimed holds the lock for an instant


@ends_in_message
def run(path: Path, resources: Resources) -> int:
    """Train the run in ``path`` unless it is finished or somebody else trains it; returns an exit status."""
    directory = RunDirectory(path)
    with _taken(directory) as status:
        if status is not None:
            return status
        _begin(directory, resources)
        status = _run_ranks(directory, resources) if resources.num_ranks > 1 else _attempt(directory, resources)
        attempts.record_end(directory, _ENDS.get(status, "failed"))
        return status


@ends_in_message
def run_as_rank(path: Path, resources: Resources) -> int:
    """``run`` for one of several processes that were started elsewhere, such as by srun, with RANK and the like set.

    The first rank claims the run, and tells the others whether it is to be trained.
    """
    directory = RunDirectory(path)
    if os.environ["RANK"] != "0":
        return _attempt(directory, resources, is_to_be_trained=False)
    with _taken(directory) as status:
        if status is None:
            _begin(directory, resources)
            status = _attempt(directory, resources)
            attempts.record_end(directory, _ENDS.get(status, "failed"))
        elif resources.num_ranks > 1:
            _attempt(directory, resources, is_to_be_trained=False)
        return status


@contextlib.contextmanager
def _taken(directory: RunDirectory) -> Iterator[int | None]:
    """Claim a run: yields None where it is ours to train, or else the exit status."""
    with directory.claim(_CLAIM_TIMEOUT_S) as claimed:
        if not claimed:
            print(f"{directory.path} is being trained by another process")
            yield Exit.LOCKED
            return
        experiment = directory.read_experiment()
        found = find_run_status(directory, experiment, is_ours=True)  # it may have ended while we started
        if found.state in _ENDED:
            status, advice = _ENDED[found.state]
            if found.reason:
                print(f"{experiment.id} is {found.state}: {found.reason}{advice}", file=sys.stderr)
            yield status
            return
        directory.failure_path.unlink(missing_ok=True)
        yield None


def _begin(directory: RunDirectory, resources: Resources) -> None:
    attempts.record_start(directory, resources.num_ranks)
    directory.heartbeat_path.unlink(missing_ok=True)  # of the attempt before, whose last sign of life it was


def _attempt(directory: RunDirectory, resources: Resources, is_to_be_trained: bool = True) -> int:
    """Train as one rank, and turn whatever happens into files and an exit status."""
    reason, details = None, ""
    status: int = Exit.FAILED
    kind: FailureKind = "error"
    try:
        status = _train(directory, resources, is_to_be_trained)
    except FOREIGN_ERRORS as error:
        details = traceback.format_exc()
        reason = str(error) if isinstance(error, SuiteError) else f"{type(error).__name__}: {error}"
        kind = "killed" if isinstance(error, LostPeerError) else "error"  # killed: it goes on once all are there again
    if reason is not None:
        gc.collect()  # a file that was being written is still open, and on a full disk takes the record's place
        with contextlib.suppress(SuiteError):  # as far as the disk lets us; of several ranks the first to fail is right
            if (is_to_be_trained or _is_ours(directory)) and not directory.failure_path.exists():
                directory.record_failure(kind, reason)
        with contextlib.suppress(OSError):
            print(details, file=sys.stderr)
    if status == Exit.INTERRUPTED:
        print("interrupted: the checkpoint is written, the same command goes on from it")
    return status


def _is_ours(directory: RunDirectory) -> bool:
    """Whether no other job trains the run, as a rank without the claim sees it, which may not have met the first."""
    return attempts.has_begun(directory) or not directory.is_claimed()


def _train(directory: RunDirectory, resources: Resources, is_to_be_trained: bool) -> int:
    """Train to the end, if any rank says so; returns an exit status. Imports torch, now that the claim is ours."""
    from suite.training import distributed, environment
    from suite.training.loop import Interrupted, Training
    from suite.training.measure.untrained import measure
    from suite.training.staging.stage import stage_images

    stop = environment.StopRequest()
    ranks = distributed.start(resources)
    try:
        if not all(ranks.agree(is_to_be_trained)):
            return Exit.LOCKED
        if ranks.is_first:
            num_attempts = len(attempts.read_attempts(directory))
            record = environment.describe(resources, ranks.num_ranks, num_attempts, _environment_before(directory))
            write_atomically(directory.environment_path, json.dumps(record, indent=1).encode())
        experiment = directory.read_experiment()
        staged = stage_images(directory, experiment.dataset, resources, ranks, stop)
        if staged is None:
            return Exit.INTERRUPTED
        resources = staged
        if experiment.is_trained:
            result = Training(directory, experiment, resources, ranks).run(stop)
        else:
            result = measure(directory, experiment, resources, ranks)
    except Interrupted:
        return Exit.INTERRUPTED
    if result is not None:
        directory.write_result(result)
        directory.heartbeat_path.unlink(missing_ok=True)
    distributed.stop()
    return Exit.DONE


def _environment_before(directory: RunDirectory) -> dict[str, Any] | None:
    """Read the record of the attempt before this one, {} where that cannot be; None where a training starts."""
    if directory.newest_checkpoint() is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        return read_object(read_file(directory.environment_path))
    return {}


def _run_ranks(directory: RunDirectory, resources: Resources) -> int:
    """Run this machine's ranks under torchrun, in this process: one that fails takes the others with it."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    command = ["--standalone", f"--nproc-per-node={resources.num_ranks}", "-m", "suite.execute", str(directory.path)]
    try:
        torchrun([*command, "--resources", resources.model_dump_json(exclude_defaults=True)])
    except SignalException:
        return Exit.INTERRUPTED
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        killed = {rank: code for rank, code in codes.items() if code < 0 and code != -signal.SIGTERM}
        if killed:  # the others then failed for want of a peer: that is no reason
            reason = f"rank {min(killed)} was killed by {describe_signal(-killed[min(killed)])}"
            with contextlib.suppress(SuiteError):
                directory.record_failure("killed", reason)
        return Exit.FAILED
    return Exit.DONE


def die_with_parent() -> None:
    """Ask the kernel (Linux) to kill this process when its parent dies, so that no run outlives a killed grid."""
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], epilog=_UNWATCHED)
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--resources", type=Resources.model_validate_json, default="{}", help="Resources as JSON")
    arguments = parser.parse_args()
    die_with_parent()
    os.environ.setdefault(*WAITING_THREADS)
    resources = arguments.resources
    try:
        RunDirectory(arguments.run_directory).read_experiment()
    except RecordError as error:
        parser.error(str(error))
    if "RANK" in os.environ:
        return _attempt(RunDirectory(arguments.run_directory), resources)
    return run(arguments.run_directory, resources)


if __name__ == "__main__":
    sys.exit(main())
