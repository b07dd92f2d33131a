"""``--freeze``: write down what is to be shown, and by which runs, before the first of them begins."""

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from launchers.command.grid_request import GridRequest
from suite.base.commit import commit
from suite.base.errors import SpecError
from suite.papers import list_claims
from suite.store.frozen_plan import FrozenPlan, plan_path, write_plan
from suite.store.run_directory import RunDirectory


def freeze(grid: GridRequest, file: Path, console: Console) -> None:
    """Write the grid's plan to a file and to the run store.

    Raises:
        SpecError: A run of the plan has begun.
        RunError: A plan is there already, or cannot be written.
    """
    options, suite = grid.options, grid.suite
    begun = [one.id for one in grid.experiments if RunDirectory.of(options.runs, one).path.exists()]
    if begun:
        raise SpecError(
            f"{len(begun)} of the {len(grid.experiments)} runs of this plan have begun, such as {begun[0]}: a plan is "
            "frozen before its runs. Choose seeds that nobody has seen, such as --seeds 8-19, or another --runs"
        )
    claims = [claim for paper in list_claims() for claim in paper.claims if suite.name in claim.suites]
    plan = FrozenPlan(
        suite=suite.name,
        profile=grid.profile_name,
        frozen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        seeds=tuple(options.seeds),
        looks=options.looks or (len(options.seeds),),
        until=options.until,
        max_seeds=options.max_seeds if options.until else None,
        configurations=tuple(sorted({experiment.configuration for experiment in grid.experiments})),
        claims=tuple(claims),
    )
    size = f"{len(plan.configurations)} configurations, {len(plan.claims)} claims, {len(plan.seeds)} seeds"
    stored = plan_path(options.runs, suite.name, grid.profile_name)
    files = {path.absolute(): path for path in (file, stored)}.values()  # it may be named as the store names it
    write_plan(list(files), plan)
    for path in files:
        console.print(f"{path}: {size}; SHA-256 {plan.sha256}", soft_wrap=True)
