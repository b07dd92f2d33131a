"""The errors a user can meet. Each message says what was found, what was expected and what to do next."""

import difflib
from collections.abc import Iterable


class SuiteError(Exception):
    """Base of all errors whose message is written for the user; shown without a traceback."""


FOREIGN_ERRORS = (Exception, SystemExit)  # what code of others may raise; a sys.exit there would end us in silence


class SpecError(SuiteError, ValueError):
    """A suite, experiment, model or option that cannot be: misspelt, out of range, contradictory."""


class DataError(SuiteError):
    """Images or labels that are missing, broken or not what the catalog says."""


class RunError(SuiteError):
    """A run that cannot go on: the loss is not finite, the disk is full, a rank died."""


class LostPeerError(RunError):
    """Another rank of the run is gone, or could not be met: the run goes on once all of them are there again."""


class RecordError(SuiteError):
    """A file of a run directory that cannot be read or must not be averaged."""


class KeptRecordError(RecordError):
    """A result that this process cannot use, though its content may be right: no retry sets it aside."""


def check_name(kind: str, found: str, valid: Iterable[str]) -> None:
    """Raise SpecError unless ``found`` is one of ``valid``."""
    names = list(valid)
    if found not in names:
        raise unknown_name(kind, found, names)


def missing_weights(teacher: str) -> SpecError:
    """The error for a teacher of timm's that nobody has named trained weights for."""
    return SpecError(
        f"the teacher {teacher} needs its trained weights, which are not part of this project: "
        "--teacher-weights FILE names them (.pth or .safetensors, as timm's own)"
    )


def unknown_name(kind: str, found: str, valid: Iterable[str]) -> SpecError:
    """The error for a name that is not in a closed list, with the nearest valid one."""
    names = sorted(valid, key=lambda name: name.zfill(20) if name.isdecimal() else name)
    is_number = found.replace(".", "").isdecimal()  # which looks like others by chance
    near = [] if is_number else difflib.get_close_matches(found, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SpecError(f"unknown {kind} {found!r}.{hint} Valid: {', '.join(names)}.")
