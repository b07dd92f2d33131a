"""A plan of what is to be shown, by which runs, written before the first of them: ``RUNS/plans/NAME.json``.

``grid.py --freeze`` -> this file, whose digest stands in the result of each run that began under it -> the board, which
says whether it is as frozen. Records that are packed for others carry it along.
"""

import contextlib
import hashlib
from collections.abc import Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from suite.base.errors import RunError
from suite.base.files import naming_disk_errors, read_file, write_atomically
from suite.base.frozen import Frozen
from suite.base.reading import read_model, seal, unreadable, unseal
from suite.spec.claims import Claim

FOLDER = "plans"
MOST_LOOKS = 2  # at a result: the levels of more are not known


class FrozenPlan(Frozen):
    """Claims, configurations, seeds and the stopping rule of one suite at one scale.

    Args:
        frozen_at: time of freezing, ISO 8601, UTC.
        seeds: seeds of every configuration; those of the first look where ``until`` is given.
        looks: numbers of seeds at which the claims are judged, ascending; the last is that of all seeds.
        until: half-width in points to which the headline is to be known; None: the seeds alone say when to stop.
        max_seeds: the most seeds of ``until``.
        configurations: names of all configurations, sorted.
        claims: claims that name the suite, as they were.
    """

    format_version: Literal[1] = 1
    suite: str
    profile: str
    frozen_at: str
    commit: str
    seeds: tuple[int, ...]
    looks: tuple[int, ...] = Field(min_length=1, max_length=MOST_LOOKS)
    until: float | None = None
    max_seeds: int | None = None
    configurations: tuple[str, ...]
    claims: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if datetime.fromisoformat(self.frozen_at).tzinfo is None:
            raise ValueError(f"frozen_at is {self.frozen_at}, expected a time with its zone")
        if [*self.looks] != sorted({*self.looks}) or self.looks[0] < 1 or self.looks[-1] != len(self.seeds):
            raise ValueError(
                f"looks are {self.looks}, expected rising numbers up to that of the {len(self.seeds)} seeds"
            )
        return self

    @property
    def sha256(self) -> str:
        """Digest of all that the plan says."""
        return hashlib.sha256(self.as_record()).hexdigest()

    def as_record(self) -> bytes:
        return seal(self.model_dump_json(indent=1).encode())


def plan_path(store: Path, suite: str, profile: str) -> Path:
    """Where a store keeps the plan of a suite's profile."""
    return store / FOLDER / f"{suite}-{profile}.json"


def write_plan(paths: Sequence[Path], plan: FrozenPlan) -> None:
    """Write a plan to all of these files or to none; RunError where the disk refuses, or where one is there already.

    Each is made empty at first: of two plans that are frozen at once, only one can make it.
    """
    with contextlib.ExitStack() as undo:
        for path in paths:
            with naming_disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    path.touch(exist_ok=False)
                except FileExistsError as error:
                    advice = "a plan is frozen once. Name another file, or another --runs"
                    raise RunError(f"{path} is there already: {advice}") from error
            undo.callback(path.unlink, missing_ok=True)
        for path in paths:
            write_atomically(path, plan.as_record())
        undo.pop_all()


def read_plan(store: Path, suite: str, profile: str) -> FrozenPlan | None:
    """Read the plan of a suite's profile; None where none was frozen.

    Raises:
        RecordError: The file cannot be read, or was changed after it was written.
    """
    path = plan_path(store, suite, profile)
    return read_plan_file(path) if path.exists() else None


def read_plans(store: Path, digests: Set[str]) -> tuple[FrozenPlan, ...]:
    """Read the plans of a store that have one of these digests; RecordError if a plan cannot be read."""
    found = map(read_plan_file, sorted((store / FOLDER).glob("*.json"))) if digests else ()
    return tuple(plan for plan in found if plan.sha256 in digests)


def read_plan_file(path: Path) -> FrozenPlan:
    """Read a plan; RecordError where it cannot be read, or was changed after it was written."""
    try:
        return read_model(FrozenPlan, unseal(read_file(path)))
    except (OSError, ValueError) as error:
        advice = "Bring the file that `--freeze` wrote, or delete it: then no board of these runs is as frozen."
        raise unreadable(path, error, advice) from error
