"""What the grid prints before and after its work: suites, plan, cost, failures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from launchers.plan import Job, PlannedRun, count
from suite.spec import Profile, Suite
from suite.suites import get_suite, list_suites


def print_plan(
    console: Console, suite: Suite, name: str, profile: Profile, plan: Sequence[PlannedRun], store: Path
) -> None:
    console.print(f"{suite.name} ({suite.paper}, {suite.item}), profile {name}: {suite.question}", style="bold")
    if profile.scale_note:
        console.print(f"Not the paper's scale: {profile.scale_note}.", style="yellow")
    console.print(f"{count(plan)}; recorded in {store}")


def print_cost(console: Console, profile: Profile, plan: Sequence[PlannedRun], num_devices: int) -> None:
    """FLOPs and hours of every cell that is still to be trained, at the profile's stated rate, on so many devices."""
    from suite.training.cost import images_seen, training_flops

    table = Table(box=box.SIMPLE_HEAD)
    for title in ("run", "data", "state", "images", "FLOPs", "hours"):
        table.add_column(title, justify="left" if title in ("run", "data", "state") else "right")
    total = 0.0
    for run in plan:
        experiment = run.job.experiment
        flops = training_flops(experiment, run.job.resources)
        hours = flops / profile.sustained_flops / 3600
        total += 0.0 if run.status == "done" else hours
        table.add_row(
            f"{experiment.model} seed {experiment.seed}",
            f"{experiment.dataset} {100 * experiment.train_fraction:g} %",
            run.status,
            f"{images_seen(experiment, run.job.resources):,.0f}",
            f"{flops:.2e}",
            f"{hours:,.3g}",
        )
    console.print(table)
    unit = "GPU" if profile.device == "gpu" else "core"
    console.print(
        f"To go: {total:,.3g} {unit}-hours of training at a stated {profile.sustained_flops / 1e9:,.0f} GFLOP/s "
        f"per {unit}; {total / num_devices:,.3g} hours on {num_devices} at once."
    )


def print_suites(console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("suite", "paper", "item", "question", "runs a seed"):
        table.add_column(title)
    for name in list_suites():
        suite = get_suite(name)
        sizes = ", ".join(f"{key} {len(p.experiments())}" for key, p in suite.profiles.items())
        table.add_row(name, suite.paper, suite.item, suite.question, sizes)
    console.print(table)


def print_failures(console: Console, failed: Sequence[tuple[Job, str]]) -> None:
    """Every failed run's reason and log."""
    if failed:
        console.print(f"{len(failed)} failed; --retry-failed starts them again:", style="red")
    for job, problem in failed:
        console.print(f"  {job.directory.log_path}: {problem}", soft_wrap=True)
