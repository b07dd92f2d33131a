"""The custom models that were entered into a store's suites: ``RUNS/challengers/NAME.json``, a record each.

They lie beside the runs, so that a leaderboard that is built anywhere shows them.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from suite.base.files import naming_disk_errors, read_file, write_atomically
from suite.base.reading import read_model, unreadable
from suite.spec.custom_model import CustomModel

FOLDER = "challengers"


def record_name(custom_model: CustomModel) -> str:
    """The path of a custom model's record in a store."""
    return f"{FOLDER}/{custom_model.name}.json"


def record_custom_models(store: Path, custom_models: Iterable[CustomModel]) -> list[CustomModel]:
    """Record custom models; one takes the place of another of its name, whose runs stay but are shown no more.

    To refuse it would ask for a new name after every edit of a model. Returns the models whose place was taken, which
    the caller says.
    """
    replaced = []
    for custom_model in custom_models:
        path = store / record_name(custom_model)
        with contextlib.suppress(OSError, ValueError):  # a new one, or one that nobody can read
            before = read_model(CustomModel, read_file(path))
            if before.is_same_as(custom_model):
                custom_model = custom_model.joined_with(before)
            else:
                replaced.append(before)
        with naming_disk_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, custom_model.model_dump_json(indent=1).encode())
    return replaced


def read_custom_models(store: Path) -> list[CustomModel]:
    """Read the custom models that were entered into a store's suites, sorted by name; RecordError where one is
    unreadable."""
    found = []
    for path in sorted((store / FOLDER).glob("*.json")):
        try:
            found.append(read_model(CustomModel, read_file(path)))
        except (OSError, ValueError) as error:
            advice = "Start the grid with that --challenger again, or delete it."
            raise unreadable(path, error, advice) from error
    return found
