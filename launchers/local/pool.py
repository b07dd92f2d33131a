"""This machine's process pool: one process (or torchrun group) per run, so that a run that dies takes no other along.

A run of one rank is forked by a process that has the libraries loaded, see ``launchers.core.fork_server``.

The pool learns how a run went from its files, as any other reader does. A run that another grid has locked is waited
for; one whose parents have no result yet takes up no slot until they have.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Literal

from launchers.core.fork_server import ForkedRun, ForkServer
from launchers.core.plan import Job, PlannedRun
from suite.base.errors import SuiteError
from suite.base.exit_codes import Exit, describe_signal
from suite.base.files import open_to_append
from suite.spec.resources import WAITING_THREADS, Resources
from suite.store import run_status
from suite.store.attempts import describe_skipped, read_attempts
from suite.store.heartbeat import Watchdog

PoolState = Literal["waiting", "running", "locked", "done", "failed"]

_STATES: dict[run_status.State, PoolState] = {"running": "locked", "done": "done"}
_STATES |= dict.fromkeys(("new", "interrupted", "waiting"), "waiting")
_STATES |= dict.fromkeys(("failed", "void", "blocked"), "failed")
# a run is a world of its own, also when the grid was started by torchrun or srun
_RANK_VARIABLES = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
_MAX_RESTARTS = 2  # of a run whose process was killed from outside
_LOOK_AT_LOCKED_S = 2.0
_STOP_POLL_S = 0.02


def environment_of_runs(resources: Resources) -> dict[str, str]:
    """Make the environment of a run: ours, with as many threads as it may compute with."""
    ours = {key: value for key, value in os.environ.items() if key not in _RANK_VARIABLES}
    ours.setdefault(*WAITING_THREADS)
    return ours | {"OMP_NUM_THREADS": str(resources.threads_per_rank), "PYTHONUNBUFFERED": "1"}


class Gpus:
    """The GPUs that a pool hands out, as CUDA_VISIBLE_DEVICES names them: in turn, a run's ranks one each."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = names

    def variables(self, slot: int, num_ranks: int) -> dict[str, str]:
        """Set in the environment of a run in this place of the pool, so that it sees the GPUs of its ranks alone."""
        if not self.names:
            return {}
        places = range(slot * num_ranks, (slot + 1) * num_ranks)
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.names[place % len(self.names)] for place in places)}


class LocalRun:
    """One job's life in the pool. ``parents`` are the runs of the pool that it depends on."""

    def __init__(self, planned: PlannedRun) -> None:
        self.job: Job = planned.job
        self.state: PoolState = _STATES[planned.status.state]
        self.problem = planned.problem
        self.parents: list[LocalRun] = []
        self.process: subprocess.Popen[bytes] | ForkedRun | None = None
        self.slot = 0
        self.num_restarts = 0
        self.remark = ""  # on its checkpoints
        self._num_attempts = 0  # before the latest start
        self._watch: Watchdog | None = None

    @property
    def waits_for_parent(self) -> bool:
        """Whether it waits for another run, not for a slot."""
        return self.state == "waiting" and any(parent.state != "done" for parent in self.parents)

    def start(self, slot: int, gpus: Gpus, server: ForkServer | None = None) -> bool:
        """Start the processes, whose output goes to the run's log; a run that cannot even start has failed.

        Without a ``server`` that is alive, the run loads the libraries itself.
        """
        try:
            self.job.directory.create(self.job.experiment)
            self._watch = Watchdog(self.job.directory)
            self._num_attempts = len(read_attempts(self.job.directory))
            self._spawn(slot, gpus, server)
        except (SuiteError, OSError) as error:
            self.state, self.problem = "failed", f"{self.job.directory.path} could not be started: {error}"
            return False
        self.state, self.slot = "running", slot
        return True

    def _spawn(self, slot: int, gpus: Gpus, server: ForkServer | None) -> None:
        resources = self.job.resources
        variables = gpus.variables(slot, resources.num_ranks)
        with open_to_append(self.job.directory.log_path) as log:
            if server is not None and server.is_alive:
                self.process = server.fork(self.job.directory.path, variables)
                if self.process is not None:
                    return
            command = [sys.executable, "-m", "suite.execute", str(self.job.directory.path)]
            command += ["--resources", resources.model_dump_json(exclude_defaults=True)]
            environment = environment_of_runs(resources) | variables
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )

    def reap(self) -> bool:
        """Say whether the process is gone; if so, its files have said what became of the run."""
        code = self.process.poll() if self.process is not None else None
        if code is None:
            return False
        self.process = None
        since = read_attempts(self.job.directory)[self._num_attempts :]
        self.remark = describe_skipped(since) or self.remark
        self.look()
        if self.state == "waiting":
            self._judge(code)
        return True

    def end_if_it_hangs(self) -> None:
        """Kill processes that have been silent for too long, so that the run goes on from its checkpoint."""
        if self.process is None or self._watch is None or not (hang := self._watch.find_hang()):
            return
        with contextlib.suppress(SuiteError):
            self.job.directory.record_failure("killed", f"it hung: {hang}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # ranks have groups of their own, and die with their parent
        self._watch = None  # it takes a moment to die

    def look(self) -> None:
        """Learn from its files where the run stands: whether it has ended, is locked by another process, or is open."""
        found = run_status.find_run_status(self.job.directory, self.job.experiment)
        self.state = _STATES[found.state]
        if self.state == "failed":
            self.problem = found.reason

    def _judge(self, code: int) -> None:
        """Judge a run of ours that ended with status ``code`` and left nothing that says why."""
        log_path = self.job.directory.log_path
        if code == Exit.LOCKED:
            self.state = "locked"
            return
        if code == Exit.BLOCKED:
            self.state, self.problem = "failed", f"what it needs has no result any more; see {log_path}"
            return
        killed = f"was killed by {describe_signal(-code)}"
        how = f"the process {killed if code < 0 else f'ended with status {code} and no result'}"
        with contextlib.suppress(SuiteError):  # a full disk: the grid itself still shows the reason
            known = self.job.directory.read_failure()
            how = known.reason if known else how
            self.job.directory.record_failure("killed", how)
        self.problem = f"{how}; see {log_path}. Starting the grid again resumes it"
        self.num_restarts += 1
        self.state = "waiting" if self.num_restarts <= _MAX_RESTARTS else "failed"


class LocalPool:
    """Carries out a plan on this machine.

    Runs may share a GPU; the ranks of one run have one each, so there must be as many.

    Args:
        plan: runs, parents before those that need them.
        gpus: GPUs that are handed out to them; None on a machine without.
        server: server that forks runs of one rank; None: each loads the libraries itself, as several ranks do.
    """

    def __init__(
        self, plan: Sequence[PlannedRun], max_parallel: int, gpus: Gpus | None = None, server: ForkServer | None = None
    ) -> None:
        self.runs = [LocalRun(planned) for planned in plan]
        self._order = _in_order_of_start(self.runs)
        self._gpus, self._server = gpus or Gpus(), server
        self._free_slots = list(range(max_parallel))
        self._looked_at = 0.0

    def poll(self) -> bool:
        """Reap, start what fits; returns whether anything is left to wait for."""
        for run in self.runs:
            if run.state == "running" and run.reap():
                self._free_slots.append(run.slot)
        if time.monotonic() - self._looked_at > _LOOK_AT_LOCKED_S:
            self._looked_at = time.monotonic()
            for run in self.runs:
                if run.state == "locked":
                    run.look()
                elif run.state == "running":
                    run.end_if_it_hangs()
        for run in self._order:
            if run.state == "waiting":
                self._start_if_possible(run)
        return any(run.state in ("waiting", "running", "locked") for run in self.runs)

    def _start_if_possible(self, run: LocalRun) -> None:
        if failed := next((parent for parent in run.parents if parent.state == "failed"), None):
            # nothing is written down: once the parent has a result, the next grid simply goes on
            run.state, run.problem = "failed", f"needs {failed.job.experiment.id}, which failed"
        if run.state != "waiting" or run.waits_for_parent or not self._free_slots:
            return
        if self._server is not None and self._server.is_loading:
            return
        run.look()  # another grid may have been faster
        if run.state == "waiting" and run.start(self._free_slots[0], self._gpus, self._server):
            self._free_slots.remove(run.slot)

    def stop(self, timeout_s: float = 30.0) -> None:
        """Ask every running process for a checkpoint and an end; kill what is left after ``timeout_s``."""
        processes = [run.process for run in self.runs if run.process is not None]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and any(process.poll() is None for process in processes):
            time.sleep(_STOP_POLL_S)
        for process in processes:
            process.send_signal(signal.SIGKILL)


def _in_order_of_start(runs: Sequence[LocalRun]) -> list[LocalRun]:
    """Make each run know its parents. Within a seed those come first that the longest chain of others waits for."""
    of_id = {run.job.experiment.id: run for run in runs}
    height = dict.fromkeys(of_id, 0)
    for name, run in reversed(of_id.items()):  # children first, so that a parent sees their final heights
        run.parents = [of_id[parent.id] for parent in run.job.experiment.parents if parent.id in of_id]
        for parent in run.parents:
            parent_id = parent.job.experiment.id
            height[parent_id] = max(height[parent_id], height[name] + 1)
    return sorted(runs, key=lambda run: (run.job.experiment.seed, -height[run.job.experiment.id]))
