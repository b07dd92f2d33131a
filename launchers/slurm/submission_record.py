"""The record of what was submitted: a folder each under ``RUNS/slurm``, read by its jobs and by ``--status``.

A submission is a list of tasks, each with the runs that one job trains one after the other. Its jobs are found in
SLURM by their names, so that nothing is lost when grid.py dies while it submits.
"""

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from suite.base.errors import RecordError
from suite.base.files import read_file, write_atomically
from suite.base.frozen import Frozen
from suite.base.reading import read_model, unreadable
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources

_FILE = "submission.json"
_NAME = re.compile(r"(?P<submission>.+)\.(?P<first>\d+)(?:_(?P<link>\d+))?")


class Submission(Frozen):
    """One ``grid.py --cluster slurm``: what its tasks train, and with what.

    ``name`` starts with suite and profile; an array of SLURM is called ``<name>.<its first task>``, and the k-th of
    ``chain`` that go on with the same tasks ``<name>.<its first task>_k``. ``requeue`` is whether jobs may requeue
    themselves. ``ids`` are those of ``tasks``, by the code that submitted them, which lies in ``code``. By
    ``suite_source`` the job of the leaderboard finds a suite that is none of ours.
    """

    name: str = Field(pattern=r"-[0-9a-f]{1,14}$")
    suite: str
    profile: str
    num_seeds: int
    first_seed: int = 0
    time_min: int
    resources: Resources
    tasks: tuple[tuple[Experiment, ...], ...]
    ids: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    suite_source: str = ""
    requeue: bool = True
    chain: int = 1

    @model_validator(mode="after")
    def _check_ids(self) -> Self:
        if self.ids and [len(task) for task in self.ids] != [len(task) for task in self.tasks]:
            raise ValueError("ids are not one for each run of its tasks")
        return self

    @cached_property
    def task_of(self) -> dict[str, int]:
        """Each run's task by the experiment's id."""
        ids = self.ids or tuple(tuple(experiment.id for experiment in task) for task in self.tasks)
        return {name: number for number, task in enumerate(ids) for name in task}

    @property
    def leaderboard_name(self) -> str:
        """Name of the job that builds the leaderboard."""
        return f"{self.name}.leaderboard"

    def array_name(self, first_task: int, link: int = 1) -> str:
        """Name of the array of jobs that begins with this task, or of a later one with the same tasks."""
        return f"{self.name}.{first_task}" + (f"_{link}" if link > 1 else "")

    def later_arrays(self, first_task: int, job_name: str) -> list[str]:
        """Names of the arrays that come in the chain after that of these tasks which has a job of this name."""
        match = _NAME.fullmatch(job_name)
        link = int(match["link"] or 1) if match else 1
        return [self.array_name(first_task, later) for later in range(link + 1, self.chain + 1)]

    def experiments(self, task: int) -> tuple[Experiment, ...]:
        """Look up what a task trains.

        Raises:
            RecordError: there is no such task, or this code gives one of its runs another id than the code that
                submitted it, so that it would train something else.
        """
        if task >= len(self.tasks):
            raise RecordError(f"{self.name} has {len(self.tasks)} tasks, and none of number {task}: submit again.")
        found = self.tasks[task]
        for experiment, name in zip(found, self.ids[task] if self.ids else (), strict=bool(self.ids)):
            if experiment.id != name:
                raise RecordError(
                    f"task {task} of {self.name} is {name}, and this code makes {experiment.id} of it: a default has "
                    f"changed since. Its jobs need the code in {self.code}; cancel them, and submit again."
                )
        return found


def submissions_folder(store: Path) -> Path:
    return store / "slurm"


def write_submission(store: Path, submission: Submission) -> Path:
    """Returns its folder."""
    folder = submissions_folder(store) / submission.name
    folder.mkdir(parents=True)
    write_atomically(folder / _FILE, submission.model_dump_json().encode())  # all fields: defaults may change
    return folder


def read_submission(folder: Path) -> Submission:
    """Read what was submitted; a RecordError if it cannot be read."""
    path = folder / _FILE
    try:
        found = read_model(Submission, read_file(path))
        if found.name != folder.name:
            raise ValueError(f"it is of {found.name[:80]!r}")
    except (OSError, ValueError) as error:
        raise unreadable(path, error, "Cancel its jobs with scancel and submit again.") from error
    return found


def find_submissions(store: Path) -> list[Submission]:
    """All that were made to this store, oldest first: suites share runs, so any of them may hold one."""
    found = [read_submission(path.parent) for path in submissions_folder(store).glob(f"*/{_FILE}")]
    return sorted(found, key=lambda submission: submission.name.rpartition("-")[2])


def owner_of(store: Path, submission: str) -> int:
    """Look up the number of the user who made a submission."""
    return (submissions_folder(store) / submission / _FILE).stat().st_uid


def find_users(store: Path, submissions: Iterable[Submission]) -> set[int]:
    """This user, and all who have submitted to this store."""
    return {os.getuid(), *(owner_of(store, submission.name) for submission in submissions)}


def task_number(job_name: str, array_index: int) -> tuple[str, int] | None:
    """(submission, task) of a job; None for a job that is none of ours."""
    match = _NAME.fullmatch(job_name)
    return (match["submission"], int(match["first"]) + array_index) if match else None


def this_task(first_task: int) -> int:
    """Look up, in a job, which task of its submission it carries out."""
    return first_task + int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))


def cancel_mark(store: Path, submission: str) -> Path:
    """A file whose being there means that no job of this submission starts, or goes back into the queue."""
    return submissions_folder(store) / submission / "cancelled"
