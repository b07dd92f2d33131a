"""Batch scripts by submitit, whose private calls stand here alone: the public ones pickle a function for each job, and
an array of a thousand would need as many files. They also ask for SLURM, without which a script can be shown."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submitit.slurm.slurm import _make_sbatch_string

from launchers.slurm import queries as slurm
from suite.base.errors import RunError

_TIMEOUT_S = 180.0  # a busy controller lets sbatch ask again and again
_TAKEN = re.compile(r"(?:Submitted batch job )?(\d+)(?:;\S+| on cluster \S+)?")


class UnknownError(RunError):
    """Whether SLURM took a job is not known."""


class BatchScript:
    """A batch script of one job, or of an array of ``num_jobs``, in a folder that also takes the logs.

    ``parameters`` have submitit's names; those that are None are left to the cluster.
    """

    def __init__(self, folder: Path, parameters: Mapping[str, Any], num_jobs: int | None = None) -> None:
        self._folder = folder
        self._given = {key: value for key, value in parameters.items() if value is not None} | {"map_count": num_jobs}
        self._given["srun_args"] = ["--export=ALL", *parameters["srun_args"]]  # else a site may leave out PYTHONPATH

    def script(self, command: str) -> str:
        """The text that sbatch would be given."""
        return str(_make_sbatch_string(command, self._folder, **self._given))

    def submit(self, command: str) -> str:
        """Submit ``command``; returns SLURM's id, which is looked up by the job's own name after any doubt.

        Raises:
            RunError: SLURM took no job, with all that sbatch said; an UnknownError: perhaps it took one.
            OSError: the script cannot be written.
        """
        name = self._given["job_name"]
        path = self._folder / f"{name}.sh"
        path.write_text(self.script(command), encoding="utf-8")
        done = slurm.ask("sbatch", "--parsable", str(path), timeout_s=_TIMEOUT_S)
        found = _TAKEN.fullmatch(done.stdout.strip())
        if found and done.returncode == 0:
            return found[1]
        try:
            job_ids = slurm.look_up(name)
        except RunError as error:
            raise UnknownError(f"{slurm.words_of(done)}; {error}") from error
        if not job_ids:
            raise RunError(slurm.words_of(done))
        slurm.scancel(job_ids[1:])  # where sbatch asked again, and was heard twice
        return job_ids[0]
