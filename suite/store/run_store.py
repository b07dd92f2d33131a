"""The runs of a store: RUNS/experiments/<model>-<configuration_id>/seed-<n>/, each of them a ``RunDirectory``."""

import os
from collections.abc import Iterator
from pathlib import Path

from suite.base.errors import RecordError
from suite.spec.experiment import SEED_LIMIT, Experiment
from suite.store.old_names import folders_of, present_names
from suite.store.run_directory import EXPERIMENTS, RunDirectory


def experiments_folder(store: Path) -> Path:
    """The folder of all runs, which need not exist."""
    return store / EXPERIMENTS


def list_configurations(store: Path) -> set[str]:
    """Names of the configurations that have a folder, as ``Experiment.configuration``; none in an empty store."""
    folder = experiments_folder(store)
    try:
        return {present_names(folder).get(name, name) for name in os.listdir(folder)}
    except FileNotFoundError:
        return set()


def list_runs(store: Path) -> Iterator[RunDirectory]:
    """Every run of the store, in the order of their names."""
    return (RunDirectory(path) for path in sorted(experiments_folder(store).glob("*/seed-*")))


def find_runs(store: Path, experiment: Experiment) -> dict[int, RunDirectory]:
    """Find this experiment's run directories by seed, in order; cheaper than one ``RunDirectory.of`` each.

    RecordError if two folders stand for the same seed, such as ``seed-0`` and ``seed-00``, or one for none that can be.
    """
    found: dict[int, RunDirectory] = {}
    for folder in folders_of(experiments_folder(store), experiment):
        for seed, run in _find_in(folder, experiment).items():
            found[seed] = RunDirectory.of(store, experiment.with_seed(seed)) if seed in found else run
    return dict(sorted(found.items()))


def _find_in(folder: Path, experiment: Experiment) -> dict[int, RunDirectory]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return {}
    folders: dict[int, list[str]] = {}
    for name in sorted(names):
        if name.startswith("seed-") and name[5:].isdecimal():
            folders.setdefault(int(name[5:]), []).append(name)
    for seed, found in folders.items():
        if seed >= SEED_LIMIT:
            raise RecordError(
                f"{folder} holds {found[0]}; expected seeds below {SEED_LIMIT}. Move it out of the run store."
            )
        if found != [f"seed-{seed}"]:
            raise RecordError(
                f"{folder} holds {' and '.join(found)} for seed {seed}; expected one folder, seed-{seed}. "
                "Move the others out of the run store, or rename the only one."
            )
    paths = {seed: folder / f"seed-{seed}" for seed in folders}
    return {  # of joined stores the folders are links, and messages name what they lead to
        seed: RunDirectory(path.resolve() if path.is_symlink() else path, experiment) for seed, path in paths.items()
    }
