"""How long a grid still takes, from the pace of its runs, and how times are written."""

from collections.abc import Mapping, Sequence

from launchers.core.plan import LONGEST_S, Job


def find_time_left(runs: Sequence[tuple[Job, Mapping[str, float], bool]], num_open: int) -> float | None:
    """Estimate when all are done: the images left, at the mean rate of the runs under way times their number.

    ``runs`` come with their latest logged numbers, and whether each is under way. Open ones without numbers are taken
    to be of the others' mean size. Returns the seconds; None where no run under way has logged its rate.
    """
    begun = [(job, numbers, moves) for job, numbers, moves in runs if "num_steps" in numbers]
    rates = [numbers["images_per_s"] for _, numbers, moves in begun if moves and "images_per_s" in numbers]
    if not rates:
        return None
    left = sum(images_left(job, numbers) for job, numbers, moves in begun if moves)
    sizes = [numbers["num_steps"] * job.experiment.recipe.batch_size for job, numbers, _ in begun]
    left += (num_open - len(rates)) * sum(sizes) / len(sizes)
    return left * len(rates) / sum(rates) / sum(moves for *_, moves in runs)


def images_left(job: Job, numbers: Mapping[str, float]) -> float:
    """Count the images that a run has yet to see."""
    return float((numbers["num_steps"] - numbers["step"]) * job.experiment.recipe.batch_size)


def clock(seconds: float) -> str:
    """Spell a time as ``7:12`` or ``1:07:12``."""
    minutes, seconds = divmod(round(min(seconds, LONGEST_S)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
