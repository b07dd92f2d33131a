"""A grid's runs -> what they have cost and will cost: hours, energy and memory; and the whole status as JSON."""

from collections.abc import Sequence

from launchers.core.cost_estimate import count_run_flops
from launchers.core.run_names import describe
from launchers.slurm.grid_status import JobStatus
from leaderboards.schemas.answers import Costs, RunState, Status
from suite.cost.costs import write_hours, write_known
from suite.spec.profile import Profile


def hours_needed(found: Sequence[JobStatus], profile: Profile) -> float:
    """GPU-hours (rank-hours) that unfinished runs still need: by the rate they log, or by FLOPs before that."""
    needed, by_flops = 0.0, dict[str, float]()
    for job, remaining_s in ((status.job, status.remaining_s) for status in found if status.state != "done"):
        configuration = job.experiment.configuration_id
        if remaining_s is None and configuration not in by_flops:
            by_flops[configuration] = profile.hours(count_run_flops(job.experiment, job.resources))
        needed += by_flops[configuration] if remaining_s is None else remaining_s * job.resources.num_ranks / 3600
    return needed


def sum_costs(found: Sequence[JobStatus], profile: Profile) -> Costs:
    """Add up what the runs have cost so far, and estimate what they still need, at the mean power so far."""
    begun, needed = [status for status in found if status.hours_used], hours_needed(found, profile)
    measured = [(status.energy_kwh, status.hours_used) for status in begun if status.energy_kwh is not None]
    drawn, hours = (sum(numbers) for numbers in zip(*measured, strict=True)) if measured else (None, 1.0)
    return Costs(
        unit="GPU" if profile.device == "gpu" else "rank",
        hours_used=sum(status.hours_used for status in begun),
        hours_needed=needed,
        kwh_used=drawn,
        kwh_needed=None if drawn is None else drawn / hours * needed,
        runs_begun=len(begun),
        runs_of_known_energy=len(measured),
        peak_memory_gb=max((s.peak_memory_gb for s in found if s.peak_memory_gb is not None), default=None),
    )


def describe_costs(costs: Costs) -> str:
    """Say in one line what the runs have used, and what they still need."""
    hours = f"{costs.unit}-hours: {write_hours(costs.hours_used)} used, {write_hours(costs.hours_needed)} needed"
    energy = write_known(costs.kwh_used)
    if costs.kwh_used is not None:
        some = costs.runs_of_known_energy < costs.runs_begun
        of = f" by {costs.runs_of_known_energy} of {costs.runs_begun} runs" if some else ""
        energy += f" used{of}, {write_known(costs.kwh_needed)} needed"
    return f"{hours}; kWh: {energy}; most memory of a run, GB: {write_known(costs.peak_memory_gb)}"


def make_answer(
    suite: str, name: str, found: Sequence[JobStatus], profile: Profile, troubles: Sequence[str], is_over: bool
) -> Status:
    """Say as data what ``--status`` shows.

    Args:
        suite, name, profile: the grid's suite and profile.
        found: status of each of its runs.
        troubles: problems of nodes and jobs, in words.
        is_over: whether nothing will change by itself.
    """
    names = describe([status.job.experiment for status in found])
    runs = [_describe_run(status, names[status.job.experiment.id]) for status in found]
    costs = sum_costs(found, profile)
    return Status(suite=suite, profile=name, is_over=is_over, runs=runs, costs=costs, troubles=list(troubles))


def _describe_run(status: JobStatus, name: str) -> RunState:
    metrics, keeps_pace = status.metrics, status.keeps_pace
    same = ("state", "node", "num_requeues", "hours_used", "energy_kwh", "peak_memory_gb")
    return RunState(
        id=status.job.experiment.id,
        name=name,
        folder=str(status.job.directory.path),
        detail=status.words,
        step=int(metrics["step"]) if metrics else None,
        num_steps=int(metrics["num_steps"]) if metrics else None,
        images_per_s=metrics.get("images_per_s") if keeps_pace else None,
        remaining_s=status.remaining_s if keeps_pace else None,
        top1_percent=metrics.get("top1_percent") if status.top1_percent is None else status.top1_percent,
        **{field: getattr(status, field) for field in same},
    )
