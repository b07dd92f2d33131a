"""The outcome of the tries of ``--tune``: ``RUNS/tuned/SUITE-PROFILE.json``, from which boards take the recipes."""

from pathlib import Path

from suite.base.files import naming_disk_errors, read_file, write_atomically
from suite.base.reading import read_model, unreadable
from suite.spec.suite import TUNED
from suite.spec.tuning import Tuning

FOLDER = "tuned"


def tuning_path(store: Path, suite: str, profile: str) -> Path:
    """Where a store keeps the tuning of a suite's profile."""
    return store / FOLDER / f"{suite}-{profile}.json"


def read_tuning(store: Path, suite: str, profile: str) -> Tuning | None:
    """Read the tuning of a suite's profile; None where nothing was tuned; RecordError where it is unreadable."""
    if TUNED not in profile:
        return None
    path = tuning_path(store, suite, profile)
    try:
        return read_model(Tuning, read_file(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise unreadable(path, error, "Delete it, and start the grid with --tune again.") from error


def write_tuning(path: Path, tuning: Tuning) -> None:
    with naming_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, tuning.as_record())
