"""How long a leaderboard and ``--status`` take to read 10,000 finished runs, against ``json.loads`` of the same files.

    python benchmarks/read_results.py [--cells 10] [--seeds 1000] [--rounds 5]

All are timed in turn in the same process after a first, untimed pass, so all read from the page cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from measured import note
from timing import time_in_turn

from launchers.core.plan import Job
from launchers.slurm.grid_status import read_status
from leaderboards.boards.collect import collect
from suite.spec.experiment import Experiment
from suite.spec.profile import Entry, Profile
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory

RECIPE = Recipe(
    name="deit",
    epochs=300,
    batch_size=1024,
    learning_rate=1e-3,
    weight_decay=0.05,
    schedule="cosine",
    warmup_epochs=5,
    label_smoothing=0.1,
    crop="random_resized",
    rand_augment="rand-m9-mstd0.5-inc1",
    mixup=0.8,
    cutmix=1.0,
)


def make_profile(num_cells: int) -> Profile:
    experiments = [
        Experiment(
            model="deit_ti", dataset="cifar100", image_size=32, recipe=RECIPE, train_fraction=(i + 1) / num_cells
        )
        for i in range(num_cells)
    ]
    entries = tuple(
        Entry(row=(str(i),), columns={"top1": "top1_percent"}, experiment=experiment)
        for i, experiment in enumerate(experiments)
    )
    return Profile(entries=entries, scale_note="", device="cpu", sustained_flops=1e9)


def write_results(profile: Profile, store: Path, num_seeds: int) -> list[Path]:
    """Finished runs of every cell; returns their result files."""
    paths = []
    for experiment in profile.experiments(range(num_seeds)):
        run = RunDirectory.of(store, experiment)
        run.path.mkdir(parents=True)
        run.result_path.write_text(make_result(experiment).model_dump_json(indent=1), encoding="utf-8")
        paths.append(run.result_path)
    return paths


def make_result(experiment: Experiment) -> Result:
    return Result(
        experiment=experiment,
        top1_percent=50 + experiment.seed / 1000,
        top5_percent=80.25,
        test_loss=1.875,
        best_top1_percent=52.5,
        num_parameters=5_717_416,
        num_train_images=50_000,
        num_test_images=10_000,
        num_steps=experiment.num_steps(50_000),
        images_seen=experiment.num_steps(50_000) * experiment.recipe.batch_size,
        train_s=3601.5,
        images_per_s=4164.9,
        device="cpu",
        num_ranks=1,
        num_attempts=1,
        protocol_version=PROTOCOL_VERSION,
        commit="0" * 40,
        finished_at="2000-01-01T00:00:00+00:00",
    )


def load_plainly(paths: list[Path]) -> None:
    for path in paths:
        with path.open("rb") as file:
            json.loads(file.read())


def read_all_status(profile: Profile, store: Path, num_seeds: int) -> None:
    """Do as ``grid.py --status`` does: expand the grid, look every run up."""
    resources = Resources()
    jobs = [Job(e, RunDirectory.of(store, e), resources) for e in profile.experiments(range(num_seeds))]
    assert all(status.state == "done" for status in read_status(jobs, store))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    profile = make_profile(args.cells)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        paths = write_results(profile, store, args.seeds)
        found = sum(len(group.directories) for group in collect(profile, store).runs.values())
        assert found == len(paths), (found, len(paths))
        reference, what = "json.loads of the same files", f"{len(paths):,} results"
        works: dict[str, Callable[[], object]] = {
            reference: lambda: load_plainly(paths),
            f"a leaderboard reads {what}": lambda: collect(profile, store),
            f"--status of {what}": lambda: read_all_status(profile, store, args.seeds),
        }
        seconds = time_in_turn(works, args.rounds, warmup=1)
    for name, of_rounds in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(of_rounds, seconds[reference], strict=True))
        print(f"{name:40s} {statistics.median(of_rounds):7.3f} s   {ratio:.2f} times its time")
        if name != reference:
            note(name, reference, of_rounds, seconds[reference])


if __name__ == "__main__":
    main()
