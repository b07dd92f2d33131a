"""Several run stores, of several machines or people -> one, of links, in which every run stands once.

Before ``collect`` on a number's way. A run that two stores have finished must have come out the same in both.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from suite.base.errors import RecordError
from suite.base.files import read_file, write_atomically
from suite.store.custom_models import read_custom_models, record_custom_models
from suite.store.frozen_plan import FOLDER as PLANS
from suite.store.old_names import present_names
from suite.store.run_directory import RunDirectory
from suite.store.run_store import experiments_folder, list_runs
from suite.store.tuning import FOLDER as TUNINGS

_OUTCOME = ("top1_percent", "top5_percent", "test_loss", "best_top1_percent", "num_steps", "protocol_version")


@contextlib.contextmanager
def joined(stores: Sequence[Path]) -> Iterator[Path]:
    """Join stores for as long as the ``with`` lasts; a single one is itself.

    A run that is finished in one store and not in another is the finished one's; of equal results the first is taken.

    Raises:
        RecordError: two stores have finished the same run with different numbers, have different frozen plans, or one's
            result or custom model cannot be read.
    """
    if len(stores) == 1:
        yield stores[0]
        return
    with tempfile.TemporaryDirectory() as folder:
        experiments_folder(Path(folder)).mkdir()
        for name, runs in _runs_by_id(stores).items():
            link = experiments_folder(Path(folder)) / name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(_choose(runs).path)
        for store in stores:
            _add_custom_models(store, Path(folder))
            _add_plans(store, Path(folder))
        yield Path(folder)


def _add_custom_models(store: Path, joined_store: Path) -> None:
    """Record the custom models of one more store: ``mine`` is ``mine_2`` where another store calls another so, and what
    two stores call otherwise has the name of the first."""
    known, found = read_custom_models(joined_store), read_custom_models(store)
    for custom_model in found:
        same = [other for other in known if other.digest == custom_model.digest]
        same.sort(
            key=lambda other: (set(custom_model.boards).isdisjoint(other.boards), other.name != custom_model.name)
        )
        own = (same or [custom_model])[0].name
        for name in itertools.chain([own], (f"{own}_{number}" for number in itertools.count(2))):
            holders = [other.digest for other in (known if name == own else [*known, *found]) if other.name == name]
            if not holders or custom_model.digest in holders:
                break
        record_custom_models(joined_store, [custom_model.model_copy(name=name)])


def _add_plans(store: Path, joined_store: Path) -> None:
    """Copy the frozen plans and tunings of one more store, unless another store has another of the same suite."""
    for folder in (PLANS, TUNINGS):
        (joined_store / folder).mkdir(exist_ok=True)
        for path in sorted((store / folder).glob("*.json")):
            copy, plan = joined_store / folder / path.name, read_file(path)
            if copy.exists() and read_file(copy) != plan:
                raise RecordError(f"{path} and another store's plan of this name differ: build their boards apart")
            write_atomically(copy, plan)


def _runs_by_id(stores: Sequence[Path]) -> dict[str, list[RunDirectory]]:
    found: dict[str, list[RunDirectory]] = {}
    for store in dict.fromkeys(store.resolve() for store in stores):  # one may be named twice
        present = present_names(experiments_folder(store))
        for run in list_runs(store):
            configuration, seed = run.id.split("/")
            found.setdefault(f"{present.get(configuration, configuration)}/{seed}", []).append(run)
    return found


def _choose(runs: Sequence[RunDirectory]) -> RunDirectory:
    """Return the first finished one of the same run, else the first."""
    if len(runs) == 1:
        return runs[0]
    finished = [(run, result) for run in runs if (result := run.read_result()) is not None]
    if not finished:
        return runs[0]
    (chosen, result), *others = finished
    for other, its_result in others:
        pairs = {name: (getattr(result, name), getattr(its_result, name)) for name in _OUTCOME}
        if differences := [f"{name} {mine} and {its}" for name, (mine, its) in pairs.items() if mine != its]:
            raise RecordError(
                f"{chosen.path} and {other.path} are the same run with different results: {', '.join(differences)}. "
                "Expected equal ones, as nothing says which holds: move one out of its store. "
                "Runs of your own need seeds of their own."
            )
    return chosen
