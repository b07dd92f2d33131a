"""Batch scripts by submitit, whose private calls stand here alone: the public ones pickle a function for each job, and
an array of a thousand would need as many files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

REFUSALS = (FailedJobError, FailedSubmissionError, OSError)
"""Raised by ``BatchScript.submit`` where sbatch takes no job."""

PYTHON = sys.executable


class BatchScript:
    """A batch script of one job, or of an array of jobs.

    Args:
        folder: where script and logs are written.
        num_jobs: of the array; None for a single job.
        parameters: submitit's names; those that are None are left to the cluster.

    Raises:
        ValueError: a parameter that submitit does not know.
    """

    def __init__(self, folder: Path, parameters: Mapping[str, Any], num_jobs: int | None = None) -> None:
        self._executor = submitit.SlurmExecutor(folder)
        self._executor.update_parameters(**{key: value for key, value in parameters.items() if value is not None})
        if num_jobs is not None:
            self._executor.parameters["map_count"] = num_jobs

    def script(self, command: str) -> str:
        """The text that sbatch would be given."""
        return str(self._executor._make_submission_file_text(command, ""))

    def submit(self, command: str) -> str:
        """Submit ``command``; returns SLURM's id.

        Raises:
            FailedJobError, FailedSubmissionError, OSError: see ``REFUSALS``.
        """
        return str(self._executor._submit_command(command).job_id)


def rank_of_job() -> submitit.JobEnvironment:
    """This process among those of its job: ranks, hosts, the job's number."""
    return submitit.JobEnvironment()
