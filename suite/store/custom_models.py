"""The custom models that were entered into a store's suites: ``RUNS/challengers/NAME-DIGEST.json``, a record each.

They lie beside the runs, so that a leaderboard that is built anywhere shows them. A name is unique on a board; another
board may show another model by it, or the same one by another name. Older records are called NAME.json.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from suite.base.files import locked_folder, read_file, write_atomically
from suite.base.reading import read_model, unreadable
from suite.spec.custom_model import CustomModel

FOLDER = "challengers"


def record_name(custom_model: CustomModel) -> str:
    """The path of a custom model's record in a store."""
    return f"{FOLDER}/{custom_model.name}-{custom_model.digest}.json"


def record_custom_models(store: Path, custom_models: Sequence[CustomModel]) -> list[CustomModel]:
    """Record custom models, each with the boards that it was entered on before; returns those whose boards they took:
    other models of their names, and other names of the same models.

    To refuse them would ask for a new name after every edit of a model. Runs stay.
    """
    displaced = []
    with locked_folder(store / FOLDER) if custom_models else contextlib.nullcontext():
        for path, other in _read(store).items():
            if any(record_name(one) == record_name(other) for one in custom_models):
                continue
            others = [one for one in custom_models if one.name == other.name or one.digest == other.digest]
            left = [board for board in other.boards if not any(board in one.boards for one in others)]
            if len(left) < len(other.boards):
                displaced.append(other)
                if left or other.suites:
                    _write(path, other.model_copy(boards=left))
                else:
                    path.unlink()
        for custom_model in custom_models:
            place = store / record_name(custom_model)
            same = {path: other for path, other in _read(store).items() if store / record_name(other) == place}
            for other in same.values():
                custom_model = custom_model.joined_with(other)
            _write(place, custom_model)
            for path in same.keys() - {place}:  # of an older name
                path.unlink()
    return displaced


def _write(path: Path, custom_model: CustomModel) -> None:
    write_atomically(path, custom_model.model_dump_json(indent=1).encode())


def read_custom_models(store: Path) -> list[CustomModel]:
    """Read the custom models that were entered into a store's suites, sorted by name; RecordError where one is
    unreadable."""
    return list(_read(store).values())


def _read(store: Path) -> dict[Path, CustomModel]:
    found = {}
    for path in sorted((store / FOLDER).glob("*.json")):
        try:
            found[path] = read_model(CustomModel, read_file(path))
        except FileNotFoundError:  # another grid has just removed it
            continue
        except (OSError, ValueError) as error:
            raise unreadable(path, error, "Delete it, and start the grid with that --challenger again.") from error
    return found
