"""This machine's process pool: one process (or torchrun group) per run, so that a run that dies takes no other along.

The pool learns how a run went from its files, as any other reader does; a run that another grid holds is waited for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Literal

from launchers.plan import Job, PlannedRun
from suite.errors import RecordError, SuiteError
from suite.records import EXIT_ELSEWHERE, Failure

State = Literal["waiting", "running", "elsewhere", "done", "failed"]

# a run is a world of its own, also when the grid was started by torchrun or srun
_RANK_VARIABLES = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
_MAX_RESTARTS = 2  # of a run whose process was killed from outside
_LOOK_ELSEWHERE_S = 2.0


class LocalRun:
    """One job's life in the pool."""

    def __init__(self, planned: PlannedRun) -> None:
        self.job: Job = planned.job
        self.state: State = "waiting"
        self.problem = planned.problem
        self.process: subprocess.Popen[bytes] | None = None
        self.slot = 0
        self.num_restarts = 0
        if planned.status in ("done", "failed"):
            self.state = "done" if planned.status == "done" else "failed"
        elif planned.status == "running":
            self.state = "elsewhere"

    def start(self, slot: int, gpus: Sequence[str]) -> bool:
        """Start the processes, whose output goes to the run's log; a run that cannot even start has failed."""
        try:
            self.job.directory.create(self.job.experiment)
            self._spawn(slot, gpus)
        except (SuiteError, OSError) as error:
            self.state, self.problem = "failed", f"{self.job.directory.path} could not be started: {error}"
            return False
        self.state, self.slot = "running", slot
        return True

    def _spawn(self, slot: int, gpus: Sequence[str]) -> None:
        resources = self.job.resources
        command = [sys.executable, "-m", "suite.execute", str(self.job.directory.path)]
        command += ["--resources", resources.model_dump_json(exclude_defaults=True)]
        environment = {key: value for key, value in os.environ.items() if key not in _RANK_VARIABLES}
        environment |= {"OMP_NUM_THREADS": str(resources.threads_per_rank), "PYTHONUNBUFFERED": "1"}
        if gpus:
            places = range(slot * resources.num_ranks, (slot + 1) * resources.num_ranks)
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[place % len(gpus)] for place in places)
        with self.job.directory.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )

    def reap(self) -> bool:
        """Whether the process is gone; if so, the files have told what became of the run."""
        code = self.process.poll() if self.process is not None else None
        if code is None:
            return False
        self.process = None
        if self.look():
            pass
        elif code == EXIT_ELSEWHERE or self.job.directory.is_claimed():
            self.state = "elsewhere"
        else:
            self._restart_or_give_up(code)
        return True

    def look(self) -> bool:
        """Whether the run has ended, by its files."""
        try:
            if self.job.directory.read_result() is not None:
                self.state = "done"
                return True
            failure = self.job.directory.read_failure()
        except RecordError as error:
            self.state, self.problem = "failed", str(error)
            return True
        if failure is not None and failure.kind == "error":
            self.state, self.problem = "failed", failure.reason
            return True
        return False

    def look_elsewhere(self) -> None:
        """A run that another process trains: has it ended, or was it dropped so that we may take it over?"""
        if not self.look() and not self.job.directory.is_claimed():
            self.state = "waiting"

    def _restart_or_give_up(self, code: int) -> None:
        killed = f"was killed by {_signal_name(-code)} (kill, or out of memory)"
        how = f"the process {killed if code < 0 else f'ended with status {code} and no result'}"
        log_path = str(self.job.directory.log_path)
        with contextlib.suppress(SuiteError):  # a full disk: the grid itself still shows the reason
            known = self.job.directory.read_failure()
            how = known.reason if known else how
            self.job.directory.write_failure(Failure(kind="killed", reason=how, log_path=log_path))
        self.problem = f"{how}; see {log_path}. Starting the grid again resumes it"
        self.num_restarts += 1
        self.state = "waiting" if self.num_restarts <= _MAX_RESTARTS else "failed"


class LocalPool:
    """Carries out a plan on this machine, at most ``max_parallel`` runs at a time."""

    def __init__(self, plan: Sequence[PlannedRun], max_parallel: int, gpus: Sequence[str] = ()) -> None:
        self.runs = [LocalRun(planned) for planned in plan]
        self._gpus = gpus
        self._free_slots = list(range(max_parallel))
        self._looked_at = 0.0

    def poll(self) -> bool:
        """Reap, start what fits; returns whether anything is left to wait for."""
        for run in self.runs:
            if run.state == "running" and run.reap():
                self._free_slots.append(run.slot)
        if time.monotonic() - self._looked_at > _LOOK_ELSEWHERE_S:
            self._looked_at = time.monotonic()
            for run in self.runs:
                if run.state == "elsewhere":
                    run.look_elsewhere()
        for run in self.runs:
            if run.state == "waiting" and self._free_slots and not run.look():
                slot = self._free_slots[0]
                if run.start(slot, self._gpus):
                    self._free_slots.remove(slot)
        return any(run.state in ("waiting", "running", "elsewhere") for run in self.runs)

    def stop(self, patience_s: float = 30.0) -> None:
        """Ask every running process for a checkpoint and an end; kill what is left after ``patience_s``."""
        processes = [run.process for run in self.runs if run.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + patience_s
        for process in processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
