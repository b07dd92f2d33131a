"""The function that each process of a SLURM job calls: ``run_task``. When all have ended, ``requeue`` follows.

    python -m launchers.slurm.job STORE SUBMISSION FIRST_TASK

srun starts ``run_task`` once per rank. Each run is trained by a forked child, so that Python and its libraries are
loaded once for all runs of a task, and a run that dies takes no other along. SLURM's signals reach the child as
SIGTERM: all ranks stop at the same step, with a checkpoint. Beside each child its parent watches for a hang.
"""

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType

from launchers.core.fork_server import STOPPED, process_state, send_output_to
from launchers.core.preload import import_training
from launchers.slurm.lost_starts import is_near_limit, note_start, seconds_left
from launchers.slurm.submission_record import Submission, cancel_mark, read_submission, submissions_folder, this_task
from launchers.tracking.following import following
from suite.base.errors import RunError, SuiteError
from suite.base.exit_codes import Exit, describe_signal
from suite.base.files import open_to_append
from suite.execute import die_with_parent, run_as_rank
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store import attempts
from suite.store.heartbeat import Watchdog
from suite.store.run_directory import RunDirectory

STEP_END_S = 90  # before a time limit: SLURM looks every half a minute, and waits as long before it kills
_MARGIN_S = 100.0  # before a time limit, when a child that has not stopped by itself is ended
_MOST_BEHIND_S, _MOST_AHEAD_S = -300.0, 3000.0  # of a clock, as its job begins: a node may take long to boot
_TIME_LIMIT = "time limit"
_LOOK_S = 1.0
_LAST_OF_FOLLOWERS_S = 10.0  # a job that is preempted has little time
_OTHERS_FIRST_S = 10.0  # for which a rank that hangs waits: the process that is stopped is to be named, not its peers
_SIGNALS = (signal.SIGUSR2, signal.SIGTERM)
_FIRST_PORT, _NUM_PORTS = 20_000, 12_000  # below those of outgoing connections: by default 32,768 and above


def run_task(store: Path, name: str, first_task: int) -> int:
    """Train the runs of this array element, as one rank of each; returns the exit status."""
    folder, task = submissions_folder(store) / name, this_task(first_task)
    if cancel_mark(store, name).exists():
        return Exit.INTERRUPTED
    try:
        submission = read_submission(folder)
        experiments = submission.experiments(task)
        if all(RunDirectory.of(store, experiment).result_path.exists() for experiment in experiments):
            return Exit.DONE  # an earlier job of its chain has trained them
        rank = _Rank(folder, task, submission)
        _check_clock()
        _check_gpus(submission.resources)
        import_training(submission.resources)
    except Exception as error:
        image = os.environ.get("SUITE_CONTAINER")
        hint = f"; the container {image} must hold what this package needs, see containers/" if image else ""
        note_start("node", folder, task, f"{type(error).__name__}: {error}{hint}")
        raise
    trackers = submission.resources.track if rank.is_first else ()
    suite, ids = submission.suite_source or submission.suite, [experiment.id for experiment in experiments]
    say = functools.partial(print, file=sys.stderr, flush=True)  # into the log of this rank
    with following(trackers, store, suite, submission.profile, ids, say, last_s=_LAST_OF_FOLLOWERS_S):
        return rank.train(store, experiments)


def _check_clock() -> None:
    """Compare this node's clock, by which runs know when their job ends, with the job's start by the controller's."""
    started = os.environ.get("SLURM_JOB_START_TIME", "")
    ahead_s = time.time() - int(started) if started.isdecimal() else 0.0
    if not _MOST_BEHIND_S < ahead_s < _MOST_AHEAD_S:
        raise RunError(f"its clock is {ahead_s:+,.0f} s from the controller's: ask the site to run NTP on this node")


def _check_gpus(resources: Resources) -> None:
    """Check that torch sees a GPU for each of this node's ranks, or the only one that the site binds a rank to."""
    if resources.device == "gpu":
        import torch

        num_seen, num_ranks = torch.accelerator.device_count(), int(os.environ["SLURM_NTASKS_PER_NODE"])
        if num_seen < num_ranks and num_seen != 1:
            given = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
            raise RunError(
                f"torch sees {num_seen} of the {num_ranks} GPUs that this job counts on; SLURM gave it "
                f"CUDA_VISIBLE_DEVICES={given}. Compare the request for GPUs with `scontrol show node`, and torch with "
                "the driver: --site-check tries both"
            )


class _Rank:
    """One process of a job."""

    def __init__(self, folder: Path, task: int, submission: Submission) -> None:
        self._folder, self._task, self._resources = folder, task, submission.resources
        self.is_first = os.environ.get("SLURM_PROCID") == "0"
        self._ends_at = time.monotonic() + seconds_left(60.0 * submission.time_min)  # it began a while after its job
        self._latest_end = self._ends_at - min(_MARGIN_S, 60 * submission.time_min / 8)
        self._child = 0
        self._why = ""  # it was asked to stop
        self._hang = ""  # why the child was ended, if it hung
        for number in _SIGNALS:
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignores it can wait for no process

    def train(self, store: Path, experiments: Sequence[Experiment]) -> int:
        """Returns the exit status: what one rank of several ends with makes srun end the others."""
        status = 0
        for number, experiment in enumerate(experiments):
            if self._why:
                if number == 0 and self._why == _TIME_LIMIT:
                    note_start("late", self._folder, self._task)
                return Exit.INTERRUPTED
            run = RunDirectory.of(store, experiment)
            ended = self._train_in_child(run, experiment, number)
            if ended == Exit.INTERRUPTED or (ended < 0 and self._why):
                if self.is_first:
                    attempts.record_end(run, "interrupted", self._why)
                return Exit.INTERRUPTED
            if ended < 0:
                _record_killed(run, self._hang or f"was killed by {describe_signal(-ended)}")
                if self.is_first:
                    attempts.record_end(run, "lost")
            if ended == Exit.LOCKED and self.is_first:
                note_start("held", self._folder, self._task)
            if ended in (Exit.BLOCKED, Exit.FAILED) or ended < 0:
                status = Exit.FAILED
                if ended != Exit.BLOCKED and self._resources.num_ranks > 1:  # the other ranks wait for this one
                    return status
        return status

    def _train_in_child(self, run: RunDirectory, experiment: Experiment, number: int) -> int:
        """A run's exit status; negative where a signal killed it."""
        watchdog = Watchdog(run)
        self._hang = ""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until either side has its own way to take them
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # it is waited for
        child = ForkProcess(target=_become_run, args=(run, experiment, self._resources, number))
        child.start()
        assert child.pid is not None
        self._child = child.pid
        if self._why:  # a signal that came before there was a child to pass it to
            self._end_child(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            return self._wait_for_child(child, watchdog)
        finally:
            if child.exitcode is None:  # Python would wait for it at its own end
                self._end_child(signal.SIGKILL)
            self._child = 0

    def _wait_for_child(self, child: ForkProcess, watchdog: Watchdog) -> int:
        """Wait for the end of the child, or end it: when it hangs, or has not stopped in time for the job's limit."""
        while (status := child.exitcode) is None:
            is_stopped = process_state(self._child) in STOPPED
            hang = watchdog.find_hang(_OTHERS_FIRST_S if self._resources.num_ranks > 1 and not is_stopped else 0.0)
            if hang:
                self._hang = f"hung: {hang}" + ("; its process is stopped" if is_stopped else "")
            if hang or (self._why == _TIME_LIMIT and time.monotonic() > self._latest_end):
                self._end_child(signal.SIGKILL)  # a stopped process takes no other signal
            signal.sigtimedwait([signal.SIGCHLD], _LOOK_S)
        return status

    def _end_child(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(self._child, number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """SLURM warns of a time limit by USR2; before a preemption, and as it ends a job, it sends TERM too."""
        near_limit = is_near_limit(self._ends_at - time.monotonic())
        self._why = self._why or (_TIME_LIMIT if number == signal.SIGUSR2 and near_limit else "preempted")
        if self._child:
            self._end_child(signal.SIGTERM)


def _become_run(run: RunDirectory, experiment: Experiment, resources: Resources, number: int) -> None:
    """Train as a forked child, with a log and ports of its own, and end with the run's exit status."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # where SLURM finds processes by their parents, it comes here too
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*_SIGNALS, signal.SIGCHLD])
    run.path.mkdir(parents=True, exist_ok=True)
    _write_to_log(run)
    os.environ |= rank_variables(number)
    if os.environ["RANK"] == "0":
        run.create(experiment)
    sys.exit(run_as_rank(run.path, resources))


def _write_to_log(run: RunDirectory) -> None:
    """Send this process's output to the run's log; the run fails without one: no other node could do better."""
    try:
        with open_to_append(run.log_path) as log:
            send_output_to(log.fileno())
    except OSError as error:
        reason = f"cannot open its log: {error}. Expected a file: remove what is there, then use --retry-failed"
        run.record_failure("error", reason)
        raise RunError(reason) from error


def rank_variables(number: int) -> dict[str, str]:
    """torch's names for what SLURM says."""
    from submitit import JobEnvironment

    place, restart = JobEnvironment(), int(os.environ.get("SLURM_RESTART_COUNT", 0))
    return {
        "RANK": str(place.global_rank),
        "LOCAL_RANK": str(place.local_rank),
        "WORLD_SIZE": str(place.num_tasks),
        "MASTER_ADDR": place.hostnames[0],
        "MASTER_PORT": str(_rendezvous_port(int(place.raw_job_id), restart, number)),
    }


def _rendezvous_port(job_id: int, restart: int, number: int) -> int:
    """Choose the rendezvous port of a run's ranks: near jobs, their restarts and runs have ports of their own."""
    return _FIRST_PORT + (job_id * 4639 + restart * 101 + number) % _NUM_PORTS


def _record_killed(run: RunDirectory, how: str) -> None:
    reason = f"rank {os.environ['SLURM_PROCID']} on {os.environ.get('SLURMD_NODENAME', 'a node')} {how}"
    try:
        run.record_failure("killed", reason)
    except SuiteError as error:  # a full disk
        print(f"{reason}; {error}", file=sys.stderr)


if __name__ == "__main__":
    where, submission_name, first = sys.argv[1:]
    sys.exit(run_task(Path(where), submission_name, int(first)))
