"""SLURM's programs, called here alone, in an environment of our own.

They read options from variables too, such as ``SQUEUE_STATES``, ``SBATCH_WAIT`` or those of a job within which they are
called. These would win over ours, hide jobs, and go on into the jobs that are submitted.
"""

from __future__ import annotations

import os
import re
import subprocess

from suite.base.errors import RunError

_PATIENCE_S = 60.0
_OPTIONS = re.compile(r"_?(SLURMD?|SBATCH|SRUN|SALLOC|SQUEUE|SACCT|SCANCEL|SINFO|SCONTROL|SPANK|PMI2?|PMIX)_")
_PLACES = {"SLURM_CONF", "SLURM_JWT", "SLURM_SACK_SOCKET"}  # they say how SLURM is reached
_OF_A_JOB = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES"}  # set by SLURM for its GPUs


def environment() -> dict[str, str]:
    """This process's environment without what SLURM's programs would take for options, or our jobs for their own."""
    foreign = {name for name in os.environ if _OPTIONS.match(name)} - _PLACES
    foreign |= _OF_A_JOB if "SLURM_JOB_ID" in os.environ else set()
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return kept | {"SLURM_BITSTR_LEN": "0"}  # else squeue cuts long lists of an array's jobs


def ask(*command: str, patience_s: float = _PATIENCE_S) -> subprocess.CompletedProcess[str]:
    """Run one of SLURM's programs to its end; one that does not answer fails."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            timeout=patience_s, check=False, env=environment(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", f"it did not answer: {error}")


def call(*command: str) -> str:
    """The output of one of SLURM's programs; a RunError if it fails, or does not answer."""
    done = ask(*command)
    if done.returncode != 0:
        raise RunError(f"{command[0]} failed: {words_of(done)}. The jobs go on; try again.")
    return done.stdout


def words_of(done: subprocess.CompletedProcess[str]) -> str:
    """All that a program said: a site's filter gives its reason on a line before the last."""
    lines = [line.strip() for line in (done.stderr.strip() or done.stdout).splitlines()]
    return "; ".join(line for line in lines if line) or "it said nothing"
