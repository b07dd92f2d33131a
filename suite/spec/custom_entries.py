"""Custom models: models that are none of the papers', entered into a suite's tables beside them.

    CustomModel + Suite -> the same suite with an entry, and columns, for every row that trains a model

A custom model is trained by the recipe and on the data of the row's first model, in whose place it stands. Where the
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
from suite.spec.custom_model import CustomModel
from suite.spec.experiment import Experiment
from suite.spec.model_options import read_options
from suite.spec.profile import Entry, Profile, ProfileName, Row
from suite.spec.suite import Suite, Table

CUSTOM_MODELS = "challengers"  # their folder in a store
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


def with_custom_models(suite: Suite, custom_models: Sequence[CustomModel], profile_name: str = "") -> Suite:
    """Enter custom models into every table of a suite.

    Args:
        suite: as it is published.
        custom_models: each with a name of its own.
        profile_name: the only scale that they are entered at, as a changed recipe may be none at another; "": all.

    Raises:
        SpecError: a name that another custom model, a model of ours or a column has, a recipe that cannot be, no row
            that trains a model, or no such profile.
    """
    scales = [suite.scale_of(profile_name)] if profile_name else list(suite.profiles)
    names = [custom_model.name for custom_model in custom_models]
    for i, custom_model in enumerate(custom_models):
        if custom_model.name in names[:i]:
            raise SpecError(f"two custom models are called {custom_model.name!r}; give each a name of its own")
        if custom_model.name in read_options():
            raise SpecError(
                f"custom model {custom_model.name!r} is called as a model of ours; give it a name of its own"
            )
        suite = _enter(suite, custom_model, scales)
    return suite


def _enter(suite: Suite, custom_model: CustomModel, scales: Iterable[ProfileName]) -> Suite:
    columns: dict[str, dict[str, None]] = {table.name: {} for table in suite.tables}
    profiles = {**suite.profiles}
    for name in scales:
        profile = profiles[name]
        entries = [entry for table in suite.tables for entry in _entries(suite, profile, table, custom_model)]
        for entry in entries:
            table = suite.table(entry.table)
            _check_columns(table, suite.entries_of(profile, table), entry)
            columns[table.name] |= dict.fromkeys(entry.columns)
        profiles[name] = profile.model_copy(update={"entries": (*profile.entries, *entries)})
    if not any(columns.values()):
        raise SpecError(
            f"suite {suite.name} trains no model from its own start, so that {custom_model.name} has no row to enter"
        )
    tables = tuple(
        table.model_copy(update={"custom_columns": (*table.custom_columns, *columns[table.name])})
        for table in suite.tables
    )
    entered = (*suite.custom_models, custom_model)
    return suite.model_copy(update={"tables": tables, "profiles": profiles, "custom_models": entered})


def _check_columns(table: Table, entries: Iterable[Entry], entered: Entry) -> None:
    taken = {column for entry in entries for column in entry.columns} | {derived.column for derived in table.derived}
    for column in taken.intersection(entered.columns):
        raise SpecError(f"{table.item} has a column {column} already: give the custom model another name")


def _entries(suite: Suite, profile: Profile, table: Table, custom_model: CustomModel) -> Iterator[Entry]:
    """Stand in the place of each row's first model on each of the row's data."""
    by_row = _references(suite.entries_of(profile, table))
    has_one_set = all(len(references) == 1 for references in by_row.values())
    for references in by_row.values():
        for reference in references.values():
            beside = _name_columns(reference, custom_model.name, has_one_set)
            if not beside:
                continue
            candidates = {e.arm_id: e for e in (_replace_model(custom_model, of) for of in reference.candidates)}
            first, *others = candidates.values()  # a search is one over what the recipe leaves open
            yield reference.model_copy(
                update={
                    "columns": {column: reference.columns[of] for column, of in beside.items()},
                    "experiment": first,
                    "alternatives": tuple(others),
                    "custom_model": custom_model.name,
                    "beside": beside,
                }
            )


def _replace_model(custom_model: CustomModel, reference: Experiment) -> Experiment:
    """Train a custom model as the reference is trained.

    Raises:
        SpecError: a changed field of the recipe that cannot be.
    """
    try:
        recipe = reference.recipe.model_copy(update=custom_model.recipe)
    except ValidationError as error:
        raise SpecError(f"custom model {custom_model.name}: recipe.{describe(error)}") from error
    model = custom_model.name if custom_model.source else custom_model.words
    fields = {
        "model": model,
        "model_source": custom_model.source,
        "model_options": custom_model.options,
        "recipe": recipe,
    }
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
    """The custom model's columns, each with the reference's in whose place it stands."""
    named: dict[str, str] = {}
    for column, metric in reference.columns.items():
        if metric in _METRICS:
            named.setdefault(f"{name}_{_METRICS[metric] if has_one_set else column}", column)
    return named


# -- who was entered, in the store


def record_name(custom_model: CustomModel) -> str:
    """Name a custom model's record, by its path in a store."""
    return f"{CUSTOM_MODELS}/{custom_model.name}.json"


def as_record(custom_model: CustomModel) -> bytes:
    """Write down who was entered, as JSON."""
    return custom_model.model_dump_json(indent=1).encode()


def record_custom_models(store: Path, custom_models: Iterable[CustomModel]) -> list[CustomModel]:
    """Keep who was entered; one takes the place of another model of its name, whose runs stay but are shown no more.

    To refuse it would ask for a new name after every edit of a model. Whoever calls this says whose place was taken.

    Returns:
        The custom models that were entered before under these names and are other models.

    Raises:
        RunError: the store cannot be written to.
    """
    replaced = []
    for custom_model in custom_models:
        path = store / record_name(custom_model)
        entered = custom_model
        with contextlib.suppress(OSError, ValueError):  # a new one, or one that nobody can read
            before = _read(path)
            if before.is_same_as(custom_model):
                entered = custom_model.joined_with(before)
            else:
                replaced.append(before)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(path.parent, error) from error
        write_atomically(path, as_record(entered))
    return replaced


def read_custom_models(store: Path) -> list[CustomModel]:
    """All that were entered into a store's suites, sorted by name.

    Raises:
        RecordError: a record that cannot be read.
    """
    found = []
    for path in sorted((store / CUSTOM_MODELS).glob("*.json")):
        try:
            found.append(_read(path))
        except (OSError, ValueError) as error:
            raise RecordError(
                f"cannot read {path}: {describe(error)}. Start the grid with that --challenger again, or delete it."
            ) from error
    return found


def _read(path: Path) -> CustomModel:
    return read_model(CustomModel, read_file(path))


def with_recorded_custom_models(suite: Suite, profile_name: str, store: Path, arms: Collection[str]) -> Suite:
    """Enter those of a store's custom models that were entered into this suite and have a run of it at this scale.

    Args:
        suite: as it is published.
        profile_name: the scale.
        store: the run store.
        arms: names of those that the store has runs of.
    """
    entered = []
    for custom_model in read_custom_models(store):
        if custom_model.suites and suite.name not in custom_model.suites:
            continue  # suites share runs: it may have some that this one has too
        try:
            profile = with_custom_models(suite, [custom_model], profile_name).profile(profile_name)
        except SpecError:  # no row of this suite, or no recipe at this scale
            continue
        own = (e for entry in profile.entries if entry.beside for e in entry.candidates)
        if any(e.arm in arms for e in own):
            entered.append(custom_model)
    return with_custom_models(suite, entered, profile_name)
