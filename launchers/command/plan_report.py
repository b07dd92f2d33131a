"""The grid's reports before and after its work: suites, plan, cost, failures."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import get_args

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from rich.text import Text

from launchers.core.cost_estimate import count_run_flops
from launchers.core.plan import Job, PlannedRun, count
from launchers.core.run_names import describe
from leaderboards.schemas import answers
from suite.cost.costs import images_seen, models_to_count, write_hours
from suite.papers import get_suite, list_suites
from suite.plugins.find_plugin import Kind, list_plugins
from suite.spec.experiment import Experiment
from suite.spec.model_options import BATCH_NORMED
from suite.spec.profile import Profile, ProfileName
from suite.spec.resources import Resources
from suite.spec.suite import Suite


def print_plan(
    console: Console, suite: Suite, name: str, profile: Profile, plan: Sequence[PlannedRun], store: Path
) -> None:
    """Print the suite's question, how far the profile is from the paper's scale, and how many runs are left.

    Args:
        name: profile that is planned.
        store: folder of the runs.
    """
    console.print(f"{suite.name} ({suite.paper}, {suite.item}), profile {name}: {suite.question}", style="bold")
    if profile.scale_note:
        console.print(f"Not the paper's scale: {profile.scale_note}.", style="yellow")
    console.print(f"{count(plan)}; recorded in {store}")
    open_jobs = (run.job for run in plan if run.status.is_open and run.job.experiment.is_trained)
    if normed := sorted({job.experiment.model for job in open_jobs if _may_norm_less_than_a_batch(job)}):
        console.print(
            f"{', '.join(normed)}: batch norms, where there are any, will see fewer images at once than the recipe's "
            "batch, by --micro-batch or several ranks. Results will differ by it; they record it, and boards say so.",
            style="yellow",
        )


def _may_norm_less_than_a_batch(job: Job) -> bool:
    experiment, batch_size = job.experiment, job.experiment.recipe.batch_size
    may_be_normed = experiment.model in BATCH_NORMED or experiment.model_source is not None
    return may_be_normed and job.resources.split_batch(batch_size)[0] < batch_size


def print_cost(
    console: Console, suite: Suite, name: str, profile: Profile, plan: Sequence[PlannedRun], num_devices: int
) -> answers.Plan:
    """Print FLOPs and hours of every run that is still to be done, at the profile's stated rate; returns the same.

    Args:
        name: profile that is planned.
        plan: plan of at least one run.
        num_devices: number of cores or GPUs that work at once.
    """
    experiments = [run.job.experiment for run in plan]
    _count_models(console, experiments, plan[0].job.resources)
    names = describe(experiments)
    runs = [_estimate(profile, run, names[run.job.experiment.id]) for run in plan]
    total = sum(run.hours for run in runs if run.state != "done")
    numbers = (Column(title, justify="right") for title in ("images", "FLOPs", "hours"))
    table = Table("run", "data", "state", *numbers, box=box.SIMPLE_HEAD)
    for run in runs:
        numbers_of_run = (f"{run.images:,.0f}", f"{run.flops:.2e}", write_hours(run.hours))
        table.add_row(run.name, run.dataset, run.state, *numbers_of_run)
    console.print(table)
    unit = _unit(profile)
    rate = f"{profile.sustained_flops / 1e9:,.0f} GFLOP/s per {unit}"
    console.print(
        f"To go: {write_hours(total)} {unit}-hours of training at a stated {rate}; "
        f"{write_hours(total / num_devices)} hours on {num_devices} at once."
    )
    return answers.Plan(suite=suite.name, profile=name, runs=runs, unit=unit, hours_needed=total, devices=num_devices)


def _estimate(profile: Profile, run: PlannedRun, name: str) -> answers.RunOfPlan:
    experiment, flops = run.job.experiment, count_run_flops(run.job.experiment, run.job.resources)
    return answers.RunOfPlan(
        id=experiment.id,
        name=name,
        folder=str(run.job.directory.path),
        dataset=experiment.dataset,
        state=run.status.state,
        reason=run.status.reason,
        images=images_seen(experiment, run.job.resources),
        flops=flops,
        hours=profile.hours(flops),
    )


def print_suites(console: Console) -> answers.SuiteList:
    """Print every suite, how many runs each of its profiles has, and what they cost; returns the same."""
    suites = [get_suite(name) for name in list_suites()]
    names = [name for name in get_args(ProfileName) if any(name in suite.profiles for suite in suites)]
    grids = {(s.name, name): profile.experiments() for s in suites for name, profile in s.profiles.items()}
    _count_models(console, [experiment for grid in grids.values() for experiment in grid], Resources())
    columns = (Column(name, no_wrap=True) for name in names)
    table, listed = Table("suite", *columns, box=box.SIMPLE_HEAD, pad_edge=False), []
    for suite in suites:
        profiles = {name: suite.profiles[name] for name in names if name in suite.profiles}
        sizes = {name: _size(profile, grids[suite.name, name]) for name, profile in profiles.items()}
        costs = [_write_size(sizes[name], "\n") if name in sizes else "" for name in names]
        what = Text(f"{suite.name}\n", "bold").append(f"{suite.paper.partition(' (')[0]}, {suite.item}\n", "not bold")
        table.add_row(what.append(suite.question, "not bold dim"), *costs)
        about = {field: getattr(suite, field) for field in ("name", "paper", "item", "question")}
        listed.append(answers.ListedSuite(**about, profiles=sizes))
    console.print(table)
    console.print("Runs a seed, and hours at the rate that a profile states. All suites together, shared runs once:")
    for name in names:
        own = [suite for suite in suites if name in suite.profiles]
        distinct = {experiment.id: experiment for suite in own for experiment in grids[suite.name, name]}
        console.print(f"  {name}: {_write_size(_size(own[0].profiles[name], distinct.values()))}")
    kinds: tuple[Kind, ...] = ("suites", "models", "image_sets")
    plugins = {kind: list(list_plugins(kind)) for kind in kinds}
    for kind, found in plugins.items():
        if found:
            console.print(f"Installed plug-ins among {kind.replace('_', ' ')}: {', '.join(found)}")
    return answers.SuiteList(suites=listed, plugins=plugins)


def _size(profile: Profile, experiments: Collection[Experiment]) -> answers.PlannedSize:
    hours = profile.hours(sum(count_run_flops(experiment, Resources()) for experiment in experiments))
    return answers.PlannedSize(runs=len(experiments), hours=hours, unit=_unit(profile))


def _write_size(size: answers.PlannedSize, separator: str = ", ") -> str:
    return f"{size.runs} runs{separator}{write_hours(size.hours)} {size.unit}-h"


def _unit(profile: Profile) -> answers.Unit:
    return "GPU" if profile.device == "gpu" else "core"


def _count_models(console: Console, experiments: Iterable[Experiment], resources: Resources) -> None:
    """Count the operations of models that are new, and say so: it can take a minute."""
    new = models_to_count(experiments, resources)
    if new:
        console.print(f"Counting the operations of {len(new)} models, once.")
    for experiment in track(new, "", console=console, transient=True, disable=not console.is_terminal):
        count_run_flops(experiment, resources)


def print_failures(console: Console, failed: Sequence[tuple[Job, str]]) -> None:
    """Print every failed run's reason and log."""
    if failed:
        console.print(f"{len(failed)} failed; --retry-failed starts them again:", style="red")
    for job, problem in failed:
        log = job.directory.log_path
        console.print(f"  {log if log.exists() else job.experiment.id}: {problem}", soft_wrap=True)
