"""From a plan to SLURM's queue, through submitit: one array for all runs that are missing, one job for the leaderboard.

The only module that submits. What the jobs run is in ``node``, what becomes of them is read by ``status``.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import submitit
from pydantic import Field, NonNegativeInt, PositiveInt

from launchers import slurm
from launchers.node import WARNING_S
from launchers.plan import PlannedRun
from launchers.submission import (
    Submission,
    array_name,
    leaderboard_name,
    new_name,
    submissions_folder,
    write_submission,
)
from suite.errors import RunError, SpecError, unknown_name
from suite.spec import Frozen, Suite

_VALUE = re.compile(r"[\w.,:;=+@%/()|&*!<>\[\]-]+")
_STORE = re.compile(r"[^\x00-\x1f%]+")
_ALLOWED = (  # sbatch's long options that --slurm may name; none of them runs or reads a file
    "begin", "comment", "core-spec", "deadline", "exclude", "exclusive", "gres", "hint", "licenses",
    "mail-type", "mail-user", "mem-per-cpu", "mem-per-gpu", "mincpus", "nice", "nodelist", "prefer", "priority",
    "reservation", "switches", "threads-per-core", "tmp", "use-min-nodes", "wckey",
)  # fmt: skip


class Allocation(Frozen):
    """What each job asks SLURM for."""

    nodes: PositiveInt = 1
    ranks_per_node: PositiveInt = 1  # on GPUs: one each
    gpus_per_node: NonNegativeInt = 0
    cpus_per_task: PositiveInt = 1
    time_min: PositiveInt = 60
    mem_gb: PositiveInt | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    more: dict[str, str] = Field(default_factory=dict)  # sbatch's own names


def parse_more(pairs: Sequence[str]) -> dict[str, str]:
    """``--slurm KEY=VALUE`` pairs.

    Raises:
        SpecError: a key that is not allowed, or a value that is none.
    """
    found = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if key not in _ALLOWED:
            raise unknown_name("key of --slurm", key, _ALLOWED)
        if not separator:
            raise SpecError(f"--slurm {pair!r}: expected KEY=VALUE")
        found[key] = sbatch_value(value)
    return found


def sbatch_value(text: str) -> str:
    """A value that may stand in a batch script.

    Raises:
        SpecError: it has spaces, quotes, line breaks or other characters that none of sbatch's lists needs.
    """
    if not _VALUE.fullmatch(text):
        raise SpecError(f"{text!r} cannot be passed to sbatch: expected no spaces, quotes, line breaks or $")
    return text


class Submitter:
    """One submission on its way into the queue.

    Args:
        runs: what is missing, in the order in which it should be trained.
        max_parallel: jobs at once; None leaves it to SLURM.
    """

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        store: Path,
        suite: Suite,
        profile: str,
        num_seeds: int,
        allocation: Allocation,
        *,
        runs_per_job: int = 1,
        max_parallel: int | None = None,
    ) -> None:
        experiments = [run.job.experiment for run in runs]
        tasks = tuple(tuple(experiments[i : i + runs_per_job]) for i in range(0, len(experiments), runs_per_job))
        self.submission = Submission(
            name=new_name(suite.name, profile),
            suite=suite.name,
            profile=profile,
            num_seeds=num_seeds,
            time_min=allocation.time_min,
            resources=runs[0].job.resources,
            tasks=tasks,
        )
        self.job_ids: list[str] = []
        self._largest_array = len(tasks)
        if not _STORE.fullmatch(str(store.absolute())):
            raise SpecError(f"--runs {str(store)!r}: SLURM takes no line breaks and no % in the names of its logs")
        self._store, self._allocation, self._max_parallel = store.absolute(), allocation, max_parallel
        self._folder = submissions_folder(self._store) / self.submission.name

    def script(self) -> str:
        """The batch script of the first array."""
        executor = self._array(0)
        return str(executor._make_submission_file_text(self._command("run", 0), ""))

    def test(self) -> None:
        """Ask SLURM whether it would take such jobs; arrays are cut where they are too large for the cluster.

        Raises:
            SpecError: with SLURM's reason, if it would not.
        """
        reason = self._refusal()
        if "array" in reason and slurm.max_array_size() < self._largest_array:
            self._largest_array = slurm.max_array_size()
            reason = self._refusal()
        if reason:
            raise SpecError(f"SLURM would refuse these jobs: {reason}. Nothing was submitted.")

    def _refusal(self) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(self.script())
            file.flush()
            done = subprocess.run(["sbatch", "--test-only", file.name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no reason given"

    def submit(self, with_leaderboard: bool = True) -> None:
        """Write down what is submitted, and submit it; after it, a job that builds the leaderboard.

        Raises:
            RunError: if sbatch fails, or the disk is full.
        """
        write_submission(self._store, self.submission)
        try:
            self._submit_arrays()
            if with_leaderboard:
                self._submit_leaderboard()
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError, OSError) as error:
            if self.job_ids:
                left = f"{', '.join(self.job_ids)} are in the queue; the same command submits what is missing"
            else:
                shutil.rmtree(self._folder, ignore_errors=True)
                left = "nothing was submitted"
            raise RunError(f"sbatch failed: {str(error).strip()}; {left}.") from error

    def _submit_arrays(self) -> None:
        """As few arrays as the cluster allows; where jobs at once are limited, one after the other."""
        for first in range(0, len(self.submission.tasks), self._largest_array):
            job = self._array(first)._submit_command(self._command("run", first))
            self.job_ids.append(job.job_id)

    def _submit_leaderboard(self) -> None:
        submission = self.submission
        executor = submitit.SlurmExecutor(self._folder)
        asked = {name: getattr(self._allocation, name) for name in ("partition", "account", "qos")}
        executor.update_parameters(
            **{name: value for name, value in asked.items() if value is not None},
            job_name=leaderboard_name(submission.name),
            time=10,
            dependency=f"afterany:{':'.join(self.job_ids)}",
            stderr_to_stdout=True,
        )
        options = ["--suite", submission.suite, "--profile", submission.profile, "--runs", str(self._store)]
        options += ["--seeds", str(submission.num_seeds)]
        executor._submit_command(f"{executor.python} -m leaderboards.build {shlex.join(options)}")

    def _command(self, what: str, first: int) -> str:
        """What a job calls. Not a pickled function: an array of a thousand would need a file each."""
        place = shlex.join([str(self._store), self.submission.name, str(first)])
        return f"{shlex.quote(sys.executable)} -u -m launchers.node {what} {place}"

    def _array(self, first: int) -> submitit.SlurmExecutor:
        num_tasks = min(self._largest_array, len(self.submission.tasks) - first)
        wanted, name = self._allocation, self.submission.name
        executor = submitit.SlurmExecutor(self._folder)
        parameters: dict[str, Any] = {
            "job_name": array_name(name, first),
            "time": wanted.time_min,
            "nodes": wanted.nodes,
            "ntasks_per_node": wanted.ranks_per_node,
            "gpus_per_node": wanted.gpus_per_node or None,
            "cpus_per_task": wanted.cpus_per_task,
            "mem": f"{wanted.mem_gb}GB" if wanted.mem_gb else None,
            "partition": wanted.partition,
            "account": wanted.account,
            "qos": wanted.qos,
            "constraint": wanted.constraint,
            "signal_delay_s": min(WARNING_S, 60 * wanted.time_min // 4),
            "array_parallelism": self._max_parallel or num_tasks,
            "stderr_to_stdout": True,
            "additional_parameters": {"requeue": True, **wanted.more},
            "srun_args": ["--kill-on-bad-exit=1", f"--cpus-per-task={wanted.cpus_per_task}"],
            "setup": [
                f"export OMP_NUM_THREADS={wanted.cpus_per_task}",
                "trap : TERM  # the shell outlives its step, to put the job back into the queue",
            ],
            "teardown": [self._command("end", first)],
        }
        if self._max_parallel and self.job_ids:
            parameters["dependency"] = f"afterany:{self.job_ids[-1]}"
        executor.update_parameters(**{key: value for key, value in parameters.items() if value is not None})
        executor.parameters["map_count"] = num_tasks
        return executor
