"""The functions that a SLURM job calls: ``run_task`` in each process, and ``end_task`` when they have ended.

    python -m launchers.node run|end STORE SUBMISSION FIRST_TASK

srun starts ``run_task`` once per rank. Each run is trained by a forked child, so that Python and its libraries are
loaded once for all runs of a task, and a run that dies takes no other along. SLURM's signals reach the child as
SIGTERM: all ranks stop at the same step, with a checkpoint. When the processes have ended, ``end_task`` looks at what
they left, and puts the job back into the queue if a run is still open: SLURM then starts the same task again, and each
run finds its own newest checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from launchers.submission import cancel_mark, read_submission, submissions_folder
from suite import attempts
from suite.errors import SuiteError
from suite.execute import die_with_parent, run_as_rank
from suite.exit_codes import Exit
from suite.records import Failure, RunDirectory
from suite.spec import Experiment, Resources
from suite.standing import stand_alone

WARNING_S = 120  # before a time limit; SLURM may send it up to a minute early
_MAX_ATTEMPTS_WITHOUT_PROGRESS = 3
_REQUEUE_PATIENCE_S = 120.0  # a controller that restarts does not answer
_SIGNALS = (signal.SIGUSR2, signal.SIGTERM)
_FIRST_PORT, _NUM_PORTS = 20_000, 20_000


def run_task(store: Path, name: str, first_task: int) -> int:
    """Train the runs of this array element, as one rank of each; returns the exit status."""
    submission = read_submission(submissions_folder(store) / name)
    rank = _Rank(submission.resources, submission.time_min)
    return rank.train(store, submission.tasks[_task(first_task)])


class _Rank:
    """One process of a job."""

    def __init__(self, resources: Resources, time_min: int) -> None:
        self._resources = resources
        self._ends_at = time.monotonic() + 60 * time_min
        self._child = 0
        self._why = ""  # it was asked to stop
        for number in _SIGNALS:
            signal.signal(number, self._stop)

    def train(self, store: Path, experiments: Sequence[Experiment]) -> int:
        """Returns the exit status: what one rank of several ends with makes srun end the others."""
        _import_training(self._resources)
        status = 0
        for number, experiment in enumerate(experiments):
            if self._why:
                return Exit.INTERRUPTED
            run = RunDirectory.of(store, experiment)
            ended = self._train_in_child(run, experiment, number)
            if ended == Exit.INTERRUPTED or (ended < 0 and self._why):
                if self._is_first:
                    attempts.record_end(run, "interrupted", self._why)
                return Exit.INTERRUPTED
            if ended < 0:
                _record_killed(run, -ended)
                if self._is_first:
                    attempts.record_end(run, "lost")
            if ended == Exit.BLOCKED:  # all ranks go on with the next run
                status = Exit.FAILED
            elif ended == Exit.FAILED or ended < 0:
                status = Exit.FAILED
                if self._resources.num_ranks > 1:  # the other ranks wait for this one
                    return status
        return status

    @property
    def _is_first(self) -> bool:
        return os.environ["SLURM_PROCID"] == "0"

    def _train_in_child(self, run: RunDirectory, experiment: Experiment, number: int) -> int:
        """A run's exit status; negative where a signal killed it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until either side has its own way to take them
        self._child = os.fork()
        if self._child == 0:
            _become_run(run, experiment, self._resources, number)
        if self._why:  # a signal that came before there was a child to pass it to
            self._pass_on()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        return os.waitstatus_to_exitcode(status)

    def _pass_on(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(self._child, signal.SIGTERM)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """SLURM warns of a time limit by USR2; before a preemption, and as it ends a job, it sends TERM too."""
        near_limit = self._ends_at - time.monotonic() < WARNING_S + 60
        self._why = self._why or ("time limit" if number == signal.SIGUSR2 and near_limit else "preempted")
        if self._child:
            self._pass_on()


def _import_training(resources: Resources) -> None:
    """Import, before the first fork, what every run needs: it takes seconds."""
    import suite.training.loop  # noqa: F401
    from suite.training.distributed import preload

    preload(resources)


def _become_run(run: RunDirectory, experiment: Experiment, resources: Resources, number: int) -> NoReturn:
    """Train as a forked child, with a log and ports of its own."""
    status: int = Exit.FAILED
    try:
        die_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # where SLURM finds processes by their parents, it comes here too
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        run.path.mkdir(parents=True, exist_ok=True)
        log = os.open(run.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ |= _rank_variables(number)
        if os.environ["RANK"] == "0":
            run.create(experiment)
        status = run_as_rank(run.path, resources)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _rank_variables(number: int) -> dict[str, str]:
    """torch's names for what SLURM says; each run of a task, and each restart, meets at a port of its own."""
    from launchers.batch import rank_of_job

    place = rank_of_job()
    restart = int(os.environ.get("SLURM_RESTART_COUNT", 0))
    port = _FIRST_PORT + (int(place.raw_job_id) * 7919 + restart * 101 + number) % _NUM_PORTS
    return {
        "RANK": str(place.global_rank),
        "LOCAL_RANK": str(place.local_rank),
        "WORLD_SIZE": str(place.num_tasks),
        "MASTER_ADDR": place.hostnames[0],
        "MASTER_PORT": str(port),
    }


def _record_killed(run: RunDirectory, number: int) -> None:
    where = f"rank {os.environ['SLURM_PROCID']} on {os.environ.get('SLURMD_NODENAME', 'a node')}"
    reason = f"{where} was killed by signal {number} (kill, or out of memory)"
    try:
        run.write_failure(Failure(kind="killed", reason=reason, log_path=str(run.log_path)))
    except SuiteError as error:  # a full disk
        print(f"{reason}; {error}", file=sys.stderr)


# -- when the processes have ended


def end_task(store: Path, name: str, first_task: int) -> int:
    """Requeue this job if a run of its task is open and has a chance; returns the job's exit status."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SLURM's, as it preempts: this ends by itself
    submission = read_submission(submissions_folder(store) / name)
    experiments = submission.tasks[_task(first_task)]
    runs = [RunDirectory.of(store, experiment) for experiment in experiments]
    found = [stand_alone(run, experiment, is_ours=True) for run, experiment in zip(runs, experiments, strict=True)]
    for experiment, standing in zip(experiments, found, strict=True):
        if standing.state not in ("done", "new", "interrupted"):
            print(f"{experiment.id} is {standing.state}: {standing.reason}", file=sys.stderr)
    still_open = [run for run, one in zip(runs, found, strict=True) if one.state in ("new", "interrupted")]
    if not still_open:
        return Exit.DONE if all(standing.state == "done" for standing in found) else Exit.FAILED
    if cancel_mark(store, submission.name).exists():
        return Exit.INTERRUPTED
    if _num_silent_starts(runs) >= _MAX_ATTEMPTS_WITHOUT_PROGRESS:
        print("this job was started several times without beginning a run; see its output above", file=sys.stderr)
        return Exit.FAILED
    stuck = [run for run in still_open if _give_up(run)]
    if len(stuck) == len(still_open):
        return Exit.FAILED
    print(f"{len(still_open)} of {len(runs)} runs are open: back into the queue", flush=True)
    return _requeue()


def _give_up(run: RunDirectory) -> bool:
    """Whether a run that was tried several times got nowhere; its failure then says so."""
    job = attempts.this_job()["job"]
    tried = [attempt for attempt in attempts.read_attempts(run) if attempt.job == job and attempt.why != "preempted"]
    last = tried[-_MAX_ATTEMPTS_WITHOUT_PROGRESS:]
    steps = {attempt.from_step for attempt in last} | {run.newest_checkpoint() or 0}
    if len(last) < _MAX_ATTEMPTS_WITHOUT_PROGRESS or len(steps) > 1:
        return False
    known = run.read_failure()
    reason = (
        f"{len(last)} attempts in a row ended before a checkpoint after step {last[-1].from_step}"
        + (f" (the last one: {known.reason})" if known else "")
        + "; raise --time-min or --mem-gb, or look into the log, then use --retry-failed"
    )
    run.write_failure(Failure(kind="error", reason=reason, log_path=str(run.log_path)))
    return True


def _num_silent_starts(runs: Sequence[RunDirectory]) -> int:
    """How often this job was started and not even began a run: a node without the project, a run held elsewhere."""
    here = attempts.this_job()
    seen = {a.restarts for run in runs for a in attempts.read_attempts(run) if a.job == here["job"]}
    return int(here["restarts"]) + 1 - len(seen)


def _requeue() -> int:
    """Put this job back into the queue, unless somebody ended it: that would bring it back to life."""
    job = os.environ["SLURM_JOB_ID"]
    give_up_at = time.monotonic() + _REQUEUE_PATIENCE_S
    while time.monotonic() < give_up_at:
        shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True, check=False)
        state = re.search(r"JobState=(\w+)", shown.stdout)
        if state is not None and state[1] != "RUNNING":  # cancelled, or requeued by another hand
            return Exit.INTERRUPTED
        if state is not None and subprocess.run(["scontrol", "requeue", job], check=False).returncode == 0:
            return Exit.INTERRUPTED
        time.sleep(1.0)
    return Exit.INTERRUPTED


def _task(first_task: int) -> int:
    return first_task + int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))


if __name__ == "__main__":
    what, where, submission_name, first = sys.argv[1:]
    work = {"run": run_task, "end": end_task}[what]
    sys.exit(work(Path(where), submission_name, int(first)))
