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


def make_script(command: str, folder: Path, parameters: Mapping[str, Any], num_jobs: int | None = None) -> str:
    """Make the script of one job, or of an array.

    Args:
        command: command line of the job.
        folder: folder of the logs.
        parameters: options by submitit's names; those that are None are left to the cluster.
        num_jobs: number of the array's jobs; 1 or None for a job of its own.
    """
    given = {key: value for key, value in parameters.items() if value is not None} | {"map_count": num_jobs}
    given["srun_args"] = ["--export=ALL", *parameters["srun_args"]]  # else a site may leave out PYTHONPATH
    return str(_make_sbatch_string(command, folder, **given))


def submit_script(script: str, folder: Path, name: str) -> str:
    """Submit a job's script, written to a folder; returns SLURM's id, looked up by the job's name after any doubt.

    Raises:
        RunError: SLURM took no job, with all that sbatch said; an UnknownError: perhaps it took one.
        OSError: the script cannot be written.
    """
    path = folder / f"{name}.sh"
    path.write_text(script, encoding="utf-8")
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
