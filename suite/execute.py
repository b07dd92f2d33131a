"""``run``: the one function that a node calls. It claims a run directory, trains, and leaves a result or a failure.

``python -m suite.execute RUN_DIRECTORY`` calls it once; under torchrun (or SLURM) every rank does.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from suite.errors import SuiteError
from suite.files import write_atomically
from suite.records import Failure, RunDirectory
from suite.spec import Resources

EXIT_FAILED = 1
EXIT_ELSEWHERE = 75  # EX_TEMPFAIL: another process holds the claim
EXIT_INTERRUPTED = 76


def run(path: Path, resources: Resources) -> int:
    """Train the run in ``path`` unless it is finished or somebody else trains it; returns an exit status.

    Only the first rank claims and records; the others follow it.
    """
    directory = RunDirectory(path)
    if int(os.environ.get("RANK", "0")) > 0:
        return _attempt(directory, resources)
    with directory.claim() as claimed:
        if not claimed:
            print(f"{path} is being trained by another process")
            return EXIT_ELSEWHERE
        if directory.read_result() is not None:  # finished while we started
            return 0
        return _attempt(directory, resources)


def _attempt(directory: RunDirectory, resources: Resources) -> int:
    """Train, and turn whatever happens into files and an exit status."""
    reason, details, finished = None, "", False
    try:
        finished = _train(directory, resources)
    except Exception as error:
        details = traceback.format_exc()
        reason = str(error) if isinstance(error, SuiteError) else f"{type(error).__name__}: {error}"
    if reason is not None:
        gc.collect()  # a file that was being written is still open, and on a full disk takes the record's place
        _record_failure(directory, reason, details)
        return EXIT_FAILED
    if not finished:
        print("interrupted: the checkpoint is written, the same command goes on from it")
    return 0 if finished else EXIT_INTERRUPTED


def _train(directory: RunDirectory, resources: Resources) -> bool:
    """One attempt; returns whether it came to its end. Imports torch, now that the claim is ours."""
    from suite.training import distributed, environment
    from suite.training.loop import Interrupted, Training

    stop = environment.StopRequest()
    ranks = distributed.start(resources)
    num_attempts = 1
    if ranks.is_first:
        if directory.environment_path.exists():
            num_attempts += json.loads(directory.environment_path.read_text())["num_attempts"]
        record = environment.describe(resources, ranks.num_ranks, num_attempts)
        write_atomically(directory.environment_path, json.dumps(record, indent=1).encode())
    try:
        result = Training(directory, directory.read_experiment(), resources, ranks).run(stop, num_attempts)
    except Interrupted:
        return False
    if result is not None:
        directory.write_result(result)
    distributed.stop()
    return True


def _record_failure(directory: RunDirectory, reason: str, details: str) -> None:
    """Leave ``failure.json`` and a traceback in the log, as far as the disk lets us."""
    with contextlib.suppress(SuiteError):
        directory.write_failure(Failure(kind="error", reason=reason, log_path=str(directory.log_path)))
    with contextlib.suppress(OSError):
        print(details, file=sys.stderr)


def die_with_parent() -> None:
    """Ask the kernel (Linux) to kill this process when its parent dies, so that no run outlives a killed grid."""
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def _start_ranks(path: Path, resources: Resources) -> int:
    """Start this machine's ranks under torchrun, in this process: one that fails takes the others with it."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    command = ["--standalone", f"--nproc-per-node={resources.num_ranks}", "-m", "suite.execute", str(path)]
    try:
        torchrun([*command, "--resources", resources.model_dump_json(exclude_defaults=True)])
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--resources", default="{}", help="Resources as JSON")
    arguments = parser.parse_args()
    die_with_parent()
    resources = Resources.model_validate_json(arguments.resources)
    if resources.num_ranks > 1 and "RANK" not in os.environ:
        return _start_ranks(arguments.run_directory, resources)
    return run(arguments.run_directory, resources)


if __name__ == "__main__":
    sys.exit(main())
