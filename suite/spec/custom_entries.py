"""Custom models: models that are none of the papers', entered into a suite's tables beside them.

    CustomModel + Suite -> the same suite with an entry, and columns, for every row that trains a model

A custom model is trained by the recipe and on the data of the row's first model, in whose place it stands. Where the
columns of a table are image sets or shares of them, it has a column of each.
"""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from suite.base.errors import SpecError
from suite.base.reading import describe
from suite.spec.custom_model import CustomModel
from suite.spec.experiment import Experiment
from suite.spec.model_options import read_options
from suite.spec.profile import Entry, Profile, ProfileName, Row
from suite.spec.suite import Suite, Table

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
    """Enter custom models into every table of a published suite, at all scales, or at the one that is named: a changed
    recipe may not fit another.

    Raises:
        SpecError: a name is taken by another custom model, by one of ours or by a column; a recipe is not valid; no
            row trains a model; or there is no such profile.
    """
    scales = [suite.scale_of(profile_name)] if profile_name else list(suite.profiles)
    for custom_model in custom_models:
        name = custom_model.name
        if name in (other.name for other in suite.custom_models):
            raise SpecError(f"two custom models are called {name!r}; give each a name of its own")
        if name in read_options():
            raise SpecError(f"custom model {name!r} is called as a model of ours; give it a name of its own")
        suite = _enter(suite, custom_model, scales)
    return suite


def _enter(suite: Suite, custom_model: CustomModel, scales: Sequence[ProfileName]) -> Suite:
    tables, profiles = [], {**suite.profiles}
    for table in suite.tables:
        columns: dict[str, None] = {}
        for scale in scales:
            profile = profiles[scale]
            entries = list(_entries(suite, profile, table, custom_model))
            own = dict.fromkeys(column for entry in entries for column in entry.columns)
            taken = {column for other in suite.entries_of(profile, table) for column in other.columns}
            for column in taken.union(derived.column for derived in table.derived).intersection(own):
                raise SpecError(f"{table.item} has a column {column} already: give the custom model another name")
            columns |= own
            profiles[scale] = profile.model_copy(entries=(*profile.entries, *entries))
        tables.append(table.model_copy(custom_columns=(*table.custom_columns, *columns)))
    if tables == list(suite.tables):
        raise SpecError(
            f"suite {suite.name} trains no model from its own start, so that {custom_model.name} has no row to enter"
        )
    return suite.model_copy(tables=tables, profiles=profiles, custom_models=(*suite.custom_models, custom_model))


def _entries(suite: Suite, profile: Profile, table: Table, custom_model: CustomModel) -> Iterator[Entry]:
    """Stand in the place of each row's first model that is trained from its own start, on each of the row's data."""
    by_row: dict[Row, dict[tuple[object, ...], Entry]] = {}
    for entry in suite.entries_of(profile, table):
        if entry.experiment.kind in ("training", "distillation") and not entry.beside:
            by_row.setdefault(entry.row, {}).setdefault(data_of(entry.experiment), entry)
    has_one_set = all(len(references) == 1 for references in by_row.values())
    for reference in (one for references in by_row.values() for one in references.values()):
        if beside := _name_columns(reference, custom_model.name, has_one_set):
            replaced = (_replace_model(custom_model, of) for of in reference.candidates)
            # a search is one over what the recipe leaves open
            first, *others = {e.configuration_id: e for e in replaced}.values()
            yield reference.model_copy(
                columns={column: reference.columns[of] for column, of in beside.items()},
                experiment=first,
                alternatives=tuple(others),
                custom_model=custom_model.name,
                beside=beside,
            )


def _replace_model(custom_model: CustomModel, reference: Experiment) -> Experiment:
    try:
        recipe = reference.recipe.model_copy(update=custom_model.recipe)
    except ValidationError as error:
        raise SpecError(f"custom model {custom_model.name}: recipe.{describe(error)}") from error
    return reference.model_copy(
        model=custom_model.name if custom_model.source else custom_model.words,
        model_source=custom_model.source,
        model_options=custom_model.options,
        recipe=recipe,
    )


def data_of(experiment: Experiment) -> tuple[object, ...]:
    """The images that an experiment is trained on: models are compared where they are the same."""
    shown = (experiment.image_size, experiment.shuffle, experiment.shuffle_patch_size)
    return experiment.dataset, experiment.train_fraction, experiment.images_drawn_by_seed, *shown


def _name_columns(reference: Entry, name: str, has_one_set: bool) -> dict[str, str]:
    """The custom model's columns, each with the reference's in whose place it stands."""
    named: dict[str, str] = {}
    for column, metric in reference.columns.items():
        if metric in _METRICS:
            named.setdefault(f"{name}_{_METRICS[metric] if has_one_set else column}", column)
    return named
