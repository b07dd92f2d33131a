"""The accuracies that a store's tries have reached: ``RUNS/tuned/SUITE-PROFILE.json``, a ``Tuning``."""

from pathlib import Path

from suite.base.errors import SpecError
from suite.base.files import locked_folder, read_file, write_atomically
from suite.base.reading import read_model, unreadable
from suite.spec.suite import Suite
from suite.spec.tuning import TUNED, Tuning

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


def add_tuning(store: Path, suite: str, profile: str, found: Tuning) -> Tuning:
    """Add tries to those that a store keeps, which another grid may have written to since; returns all.

    Args:
        store: folder of the runs.
        suite, profile: names of what was tuned.
        found: finished tries; they take the place of those of the same configurations.
    """
    with locked_folder(store / FOLDER):
        known = read_tuning(store, suite, profile) or found
        top1_percent, hours = known.top1_percent | found.top1_percent, known.hours | found.hours
        tuning = known.model_copy(top1_percent=top1_percent, hours=hours)
        write_atomically(tuning_path(store, suite, profile), tuning.model_dump_json(indent=1).encode())
    return tuning


def check_tuned(suite: Suite, profile_name: str) -> None:
    """Raise SpecError where a profile called ``laptop+tune8`` is of recipes that no try of this store has chosen."""
    if TUNED in profile_name and suite.tuning is None:
        raise SpecError(f"profile {profile_name} was not tuned in this store: start its grid with --tune")
