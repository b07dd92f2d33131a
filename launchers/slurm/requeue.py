"""The function that the script of a SLURM job calls when its processes have ended: ``end_task``.

    python -m launchers.slurm.requeue STORE SUBMISSION FIRST_TASK STATUS

It looks at what they left, and puts the job back into the queue if a run is still open: SLURM then starts the same task
again, and each run finds its own newest checkpoint. A node where nothing could begin is left out of the next try. No
torch: that is what such a node may lack.
"""

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from launchers.slurm import queries as slurm
from launchers.slurm.lost_starts import LostStart, bad_nodes, judge_start, read_starts
from launchers.slurm.submission_record import Submission, cancel_mark, read_submission, submissions_folder, this_task
from suite.base.errors import RunError
from suite.base.exit_codes import Exit
from suite.store import attempts
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status

_MAX_ATTEMPTS_WITHOUT_PROGRESS = 3
_LOCKED_S = 60  # until a run that another process has locked is looked at again
_REQUEUE_TIMEOUT_S = 120.0  # a controller that restarts does not answer


def end_task(store: Path, name: str, first_task: int, status: int) -> int:
    """Requeue this job if a run of its task is open and has a chance; returns the job's exit status.

    Args:
        first_task: first task of the job's array.
        status: exit status of the processes.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SLURM's, as it preempts: this ends by itself
    folder = submissions_folder(store) / name
    submission = read_submission(folder)
    later = submission.later_arrays(first_task, os.environ.get("SLURM_JOB_NAME", ""))
    ended = _judge(folder, submission, this_task(first_task), status, has_next=bool(later))
    if ended != Exit.INTERRUPTED and later:  # nothing is left to these
        with contextlib.suppress(RunError):
            index = os.environ["SLURM_ARRAY_TASK_ID"]
            slurm.scancel([f"{job_id}_{index}" for job_id in slurm.find_by_name(later, [os.getuid()])])
    return ended


def _judge(folder: Path, submission: Submission, task: int, status: int, has_next: bool) -> int:
    """Look at a task's runs, and requeue its job where that helps and no other job of its chain comes."""
    store, experiments = folder.parents[1], submission.experiments(task)
    runs = [RunDirectory.of(store, experiment) for experiment in experiments]
    found = [find_run_status(run, experiment, is_ours=True) for run, experiment in zip(runs, experiments, strict=True)]
    for experiment, one in zip(experiments, found, strict=True):
        if one.state not in ("done", "new", "interrupted"):
            print(f"{experiment.id} is {one.state}: {one.reason}", file=sys.stderr)
    still_open = [run for run, one in zip(runs, found, strict=True) if one.state in ("new", "interrupted")]
    if not still_open:
        return Exit.DONE if all(one.state == "done" for one in found) else Exit.FAILED
    if cancel_mark(store, submission.name).exists():
        return Exit.INTERRUPTED
    lost = judge_start(folder, task, runs, status)
    num_lost = len({start.restarts for start in lost if start.kind in ("node", "late")})  # "held" is none of its own
    if num_lost >= _MAX_ATTEMPTS_WITHOUT_PROGRESS:
        print("this job was started several times without beginning a run; see its output above", file=sys.stderr)
        return Exit.FAILED
    stuck = [] if lost else [run for run in still_open if _give_up(run)]
    if len(stuck) == len(still_open):
        return Exit.FAILED
    if not submission.requeue:
        next_one = "the next job of the chain goes on" if has_next else "the same command submits them again"
        print(f"{len(still_open)} of {len(runs)} runs are open: {next_one}", flush=True)
        _exclude_bad_nodes(folder)
        return Exit.INTERRUPTED
    print(f"{len(still_open)} of {len(runs)} runs are open: back into the queue", flush=True)
    return _requeue(folder, lost)


def _give_up(run: RunDirectory) -> bool:
    """Whether a run that was tried several times got nowhere; its failure then says so."""
    job = attempts.this_job()["job"]
    tried = [attempt for attempt in attempts.read_attempts(run) if attempt.job == job and attempt.why != "preempted"]
    last = tried[-_MAX_ATTEMPTS_WITHOUT_PROGRESS:]
    steps = {attempt.from_step for attempt in last} | {run.newest_checkpoint() or 0}
    if len(last) < _MAX_ATTEMPTS_WITHOUT_PROGRESS or len(steps) > 1:
        return False
    why = f" (the last one: {known.reason})" if (known := run.read_failure()) else ""
    ended = f"{len(last)} attempts in a row ended before a checkpoint after step {last[-1].from_step}{why}"
    run.record_failure("error", f"{ended}; raise --time-min or --mem-gb, or look into the log, then use --retry-failed")
    return True


def _requeue(folder: Path, lost: Sequence[LostStart]) -> int:
    """Put this job back into the queue, unless somebody ended it: that would bring it back to life.

    SLURM takes a list of nodes to avoid from jobs that wait alone, so it comes after the requeue; between the two this
    process lives on, as SIGTERM is ignored.
    """
    job = attempts.this_job()["job"]  # ARRAY_TASK: the number of one task is its array's too
    give_up_at = time.monotonic() + _REQUEUE_TIMEOUT_S
    while time.monotonic() < give_up_at:
        shown = slurm.ask("scontrol", "show", "job", job).stdout
        state = re.search(r"JobState=(\w+)", shown)
        restarts = re.search(r"Restarts=(\d+)", shown)
        is_older = restarts is not None and int(restarts[1]) > attempts.this_job()["restarts"]
        if is_older or (state is not None and state[1] != "RUNNING"):  # cancelled, or requeued by another hand
            return Exit.INTERRUPTED
        excluded = re.search(r"ExcNodeList=([^\s(]+)", shown)
        nodes = [*([excluded[1]] if excluded else []), *sorted({start.node for start in lost if start.node})]
        if nodes and not slurm.leaves_nodes(nodes):
            print(f"no node is left: {', '.join(nodes)} could not begin this job", file=sys.stderr)
            return Exit.FAILED
        done = slurm.ask("scontrol", "requeue", job) if state is not None else None
        if done is not None and done.returncode == 0:
            _prepare_next_start(folder, job, nodes if len(nodes) > bool(excluded) else [], lost)
            return Exit.INTERRUPTED
        if done is not None and "disabled" in done.stderr:
            cure = "set requeue = false and chain in site.toml (docs/cluster.md)"
            next_one = "the next job of the chain goes on, or the same command submits what is left"
            print(f"this cluster lets no job requeue itself: {next_one}; {cure}", file=sys.stderr)
            _exclude_bad_nodes(folder)
            return Exit.INTERRUPTED
        time.sleep(1.0)
    return Exit.INTERRUPTED


def _prepare_next_start(folder: Path, job: str, nodes: Sequence[str], lost: Sequence[LostStart]) -> None:
    """Keep this job off the nodes that could not begin it, and all of the submission off those that failed two."""
    try:
        if nodes:
            print(f"this job's next start avoids {', '.join(nodes)}", flush=True)
            slurm.exclude(job, nodes)
            _exclude_bad_nodes(folder)
        elif lost and lost[-1].kind == "held":
            slurm.call("scontrol", "update", f"JobId={job}", f"StartTime=now+{_LOCKED_S}")
    except RunError as error:  # the next start may meet the same node: at most two more times
        print(error, file=sys.stderr)


def _exclude_bad_nodes(folder: Path) -> None:
    with contextlib.suppress(RunError):
        for node in bad_nodes(read_starts(folder)):
            slurm.exclude_from_all(folder.name, node)


if __name__ == "__main__":
    where, submission_name, first, ended_with = sys.argv[1:]
    judged = submissions_folder(Path(where)) / submission_name / f"{os.environ['SLURM_JOB_ID']}.judged"
    try:
        sys.exit(end_task(Path(where), submission_name, int(first), int(ended_with)))
    finally:  # see job_end.sh: a process that dies on the way leaves no mark
        judged.touch()
