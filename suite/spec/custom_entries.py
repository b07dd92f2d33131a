"""Challengers: models that are none of the papers', entered into a suite's tables beside them.

    Challenger + Suite -> the same suite with an entry, and columns, for every row that trains a model

A challenger is trained by the recipe and on the data of the row's first model, in whose place it stands. Where the
columns of a table are image sets or shares of them, it has a column of each. The store keeps who was entered, in
``RUNS/challengers/NAME.json``, so that a leaderboard that is built anywhere shows them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from suite.base.errors import RecordError, SpecError
from suite.base.files import disk_error, read_file, write_atomically
from suite.base.reading import describe, read_model
from suite.spec.custom_model import Challenger
from suite.spec.experiment import Experiment
from suite.spec.model_options import read_options
from suite.spec.profile import Entry, Profile, ProfileName, Row
from suite.spec.suite import Suite, Table

CHALLENGERS = "challengers"  # their folder in a store
_METRICS = {  # that any model has, and how its columns are called
    "top1_percent": "top1",
    "top5_percent": "top5",
    "best_top1_percent": "best_top1",
    "top1_fraction": "top1_fraction",
    "top5_fraction": "top5_fraction",
    "num_parameters": "parameters",
    "num_parameters_millions": "parameters_millions",
    "linear_gmacs": "gmacs",
    "linear_gflops": "gflops",
    "images_per_s": "images_per_s",
}


def with_challengers(suite: Suite, challengers: Sequence[Challenger], profile_name: str = "") -> Suite:
    """Enter challengers into every table of a suite.

    Args:
        suite: as it is published.
        challengers: each with a name of its own.
        profile_name: the only scale that they are entered at, as a changed recipe may be none at another; "": all.

    Raises:
        SpecError: a name that another challenger, a model of ours or a column has, a recipe that cannot be, no row that
            trains a model, or no such profile.
    """
    scales = [suite.scale_of(profile_name)] if profile_name else list(suite.profiles)
    names = [challenger.name for challenger in challengers]
    for i, challenger in enumerate(challengers):
        if challenger.name in names[:i]:
            raise SpecError(f"two challengers are called {challenger.name!r}; give each a name of its own")
        if challenger.name in read_options():
            raise SpecError(f"challenger {challenger.name!r} is called as a model of ours; give it a name of its own")
        suite = _enter(suite, challenger, scales)
    return suite


def _enter(suite: Suite, challenger: Challenger, scales: Iterable[ProfileName]) -> Suite:
    columns: dict[str, dict[str, None]] = {table.name: {} for table in suite.tables}
    profiles = {**suite.profiles}
    for name in scales:
        profile = profiles[name]
        entries = [entry for table in suite.tables for entry in _entries(suite, profile, table, challenger)]
        for entry in entries:
            table = suite.table(entry.table)
            _check_columns(table, suite.entries_of(profile, table), entry)
            columns[table.name] |= dict.fromkeys(entry.columns)
        profiles[name] = profile.model_copy(update={"entries": (*profile.entries, *entries)})
    if not any(columns.values()):
        raise SpecError(
            f"suite {suite.name} trains no model from its own start, so that {challenger.name} has no row to enter"
        )
    tables = tuple(
        table.model_copy(update={"challenger_columns": (*table.challenger_columns, *columns[table.name])})
        for table in suite.tables
    )
    entered = (*suite.challengers, challenger)
    return suite.model_copy(update={"tables": tables, "profiles": profiles, "challengers": entered})


def _check_columns(table: Table, entries: Iterable[Entry], entered: Entry) -> None:
    taken = {column for entry in entries for column in entry.columns} | {derived.column for derived in table.derived}
    for column in taken.intersection(entered.columns):
        raise SpecError(f"{table.item} has a column {column} already: give the challenger another name")


def _entries(suite: Suite, profile: Profile, table: Table, challenger: Challenger) -> Iterator[Entry]:
    """Stand in the place of each row's first model on each of the row's data."""
    by_row = _references(suite.entries_of(profile, table))
    has_one_set = all(len(references) == 1 for references in by_row.values())
    for references in by_row.values():
        for reference in references.values():
            beside = _name_columns(reference, challenger.name, has_one_set)
            if not beside:
                continue
            candidates = {e.arm_id: e for e in (_replace_model(challenger, of) for of in reference.candidates)}
            first, *others = candidates.values()  # a search is one over what the recipe leaves open
            yield reference.model_copy(
                update={
                    "columns": {column: reference.columns[of] for column, of in beside.items()},
                    "experiment": first,
                    "alternatives": tuple(others),
                    "challenger": challenger.name,
                    "beside": beside,
                }
            )


def _replace_model(challenger: Challenger, reference: Experiment) -> Experiment:
    """Train a challenger as the reference is trained.

    Raises:
        SpecError: a changed field of the recipe that cannot be.
    """
    try:
        recipe = reference.recipe.model_copy(update=challenger.recipe)
    except ValidationError as error:
        raise SpecError(f"challenger {challenger.name}: recipe.{describe(error)}") from error
    model = challenger.name if challenger.source else challenger.words
    fields = {"model": model, "model_source": challenger.source, "model_options": challenger.options, "recipe": recipe}
    return reference.model_copy(update=fields)


def _references(entries: Iterable[Entry]) -> dict[Row, dict[tuple[object, ...], Entry]]:
    """By row and data the first entry whose model is trained from its own start."""
    found: dict[Row, dict[tuple[object, ...], Entry]] = {}
    for entry in entries:
        experiment = entry.experiment
        if experiment.kind in ("training", "distillation") and not entry.beside:
            found.setdefault(entry.row, {}).setdefault(data_of(experiment), entry)
    return found


def data_of(experiment: Experiment) -> tuple[object, ...]:
    """The images that an experiment is trained on: models are compared where they are the same."""
    return experiment.dataset, experiment.train_fraction, experiment.image_size


def _name_columns(reference: Entry, name: str, has_one_set: bool) -> dict[str, str]:
    """The challenger's columns, each with the reference's in whose place it stands."""
    named: dict[str, str] = {}
    for column, metric in reference.columns.items():
        if metric in _METRICS:
            named.setdefault(f"{name}_{_METRICS[metric] if has_one_set else column}", column)
    return named


# -- who was entered, in the store


def record_name(challenger: Challenger) -> str:
    """Name a challenger's record, by its path in a store."""
    return f"{CHALLENGERS}/{challenger.name}.json"


def as_record(challenger: Challenger) -> bytes:
    """Write down who was entered, as JSON."""
    return challenger.model_dump_json(indent=1).encode()


def record_challengers(store: Path, challengers: Iterable[Challenger]) -> list[Challenger]:
    """Keep who was entered; one takes the place of another model of its name, whose runs stay but are shown no more.

    To refuse it would ask for a new name after every edit of a model. Whoever calls this says whose place was taken.

    Returns:
        The challengers that were entered before under these names and are other models.

    Raises:
        RunError: the store cannot be written to.
    """
    replaced = []
    for challenger in challengers:
        path = store / record_name(challenger)
        entered = challenger
        with contextlib.suppress(OSError, ValueError):  # a new one, or one that nobody can read
            before = _read(path)
            if before.is_same_as(challenger):
                entered = challenger.joined_with(before)
            else:
                replaced.append(before)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(path.parent, error) from error
        write_atomically(path, as_record(entered))
    return replaced


def read_challengers(store: Path) -> list[Challenger]:
    """All that were entered into a store's suites, sorted by name.

    Raises:
        RecordError: a record that cannot be read.
    """
    found = []
    for path in sorted((store / CHALLENGERS).glob("*.json")):
        try:
            found.append(_read(path))
        except (OSError, ValueError) as error:
            raise RecordError(
                f"cannot read {path}: {describe(error)}. Start the grid with that --challenger again, or delete it."
            ) from error
    return found


def _read(path: Path) -> Challenger:
    return read_model(Challenger, read_file(path))


def with_recorded_challengers(suite: Suite, profile_name: str, store: Path, arms: Collection[str]) -> Suite:
    """Enter those of a store's challengers that were entered into this suite and have a run of it at this scale.

    Args:
        suite: as it is published.
        profile_name: the scale.
        store: the run store.
        arms: names of those that the store has runs of.
    """
    entered = []
    for challenger in read_challengers(store):
        if challenger.suites and suite.name not in challenger.suites:
            continue  # suites share runs: it may have some that this one has too
        try:
            profile = with_challengers(suite, [challenger], profile_name).profile(profile_name)
        except SpecError:  # no row of this suite, or no recipe at this scale
            continue
        own = (e for entry in profile.entries if entry.beside for e in entry.candidates)
        if any(e.arm in arms for e in own):
            entered.append(challenger)
    return with_challengers(suite, entered, profile_name)
