"""A run in the records and the same run, trained again: all numbers that a training determines, compared.

Left out is how it was trained: times, energy, memory, devices, attempts.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from leaderboards.auditing.record_checks import load_maps
from leaderboards.schemas.verification import Outcome
from suite.store.results import Result
from suite.store.run_directory import RunDirectory

# Measured: 80 runs on a GPU and on processors of two makers had equal accuracies, and losses within 4e-7; one of 9,375
# steps was 0.11 points off. Of two on another generation of one maker's, one (`cordonnier_heads`, attention by content)
# was 0.17 points off.
TOLERANCES = {
    **{"top1_percent": 0.5, "top5_percent": 0.5, "best_top1_percent": 0.5, "test_loss": 0.005},
    **{"mean_nonlocality": 0.01, "mean_gate": 0.01},
}
_EXACT = ("num_parameters", "num_macs", "num_linear_macs", "num_pruned_heads")
_LOGGED = ("loss", "top1_percent", "top5_percent", "test_loss", "nonlocality", "gates", "centers", "precisions")
_LOGGED_SHARE = 0.05  # by which a number of the log, or of a map, may be off on another device
_MOST_NAMED = 3


def compare(
    claimed: RunDirectory, found: RunDirectory, *, is_same_code: bool, is_same_kind: bool
) -> tuple[Outcome, str]:
    """Compare two finished runs of one experiment; returns the outcome, and what differs.

    Args:
        claimed, found: the run in the records, and the run that was trained again.
        is_same_code: whether both were trained by the same code, which then logs the same quantities.
        is_same_kind: whether also by the same version of torch and the same kind of processor. On a device of the same
            name their bits then have to be equal.

    Raises:
        RecordError: A result, a log or maps cannot be read.
    """
    mine, its = claimed.read_result(), found.read_result()
    assert mine is not None
    assert its is not None
    digests = [(getattr(mine, name), getattr(its, name)) for name in ("weights_sha256", "predictions_sha256")]
    maps = [load_maps(run) for run in (claimed, found)]  # by what they hold: their files may have another order
    kept = [pair for pair in [*digests, [save(tensors) if tensors else b"" for tensors in maps]] if all(pair)]
    ours, theirs = _determined_numbers(claimed, mine, maps[0]), _determined_numbers(found, its, maps[1])
    is_as_often = mine.num_evaluations == its.num_evaluations
    compared = ours.keys() | theirs.keys() if is_same_code and is_as_often else ours.keys() & theirs.keys()
    compared -= set() if is_as_often else {"best_top1_percent"}
    if bool(mine.threads_per_rank) != bool(its.threads_per_rank):  # on a GPU it is measured on more images
        compared = {name for name in compared if "nonlocality" not in name}
    names = (*ours, *theirs.keys() - ours.keys())
    other = [name for name in names if name in compared and ours.get(name) != theirs.get(name)]
    if kept and not other and all(a == b for a, b in kept):
        return "equal bits", ""
    is_by_cpus = mine.threads_per_rank and its.threads_per_rank
    if is_by_cpus and mine.weights_sha256 == its.weights_sha256 != "" and mine.top1_percent != its.top1_percent:
        return "differs", f"equal weights have {its.top1_percent:g} % and not {mine.top1_percent:g} %"
    if off := [name for name in other if not _are_close(name, ours.get(name, []), theirs.get(name, []))]:
        said = [f"{name} is {_show(ours.get(name))}, trained again {_show(theirs.get(name))}" for name in off]
        said[_MOST_NAMED:] = [f"and {len(off) - _MOST_NAMED} more"] if len(off) > _MOST_NAMED else []
        return "differs", "; ".join(said)
    here = ("device", "threads_per_rank", "num_ranks", "compiled")
    if kept and is_same_kind and all(getattr(mine, name) == getattr(its, name) for name in here):
        return "differs", "other bits on a device of the same name, by the same code and torch"
    return ("within tolerance" if other else "equal numbers"), ""


def _determined_numbers(run: RunDirectory, result: Result, maps: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    """The numbers that a training determines, by their names and, in the log, steps; without what was not recorded."""
    values = {name: getattr(result, name) for name in (*TOLERANCES, *_EXACT)}
    values = {name: value for name, value in values.items() if value is not None and (value or name in TOLERANCES)}
    for line in run.read_metrics():
        values |= {f"{name} at step {line['step']}": line[name] for name in _LOGGED if name in line}
    found = {name: _flat(value) for name, value in values.items()}
    for name, array in maps.items():
        if not name.endswith("images"):  # what single images make of it varies most
            found[f"map {name}"] = np.nan_to_num(array.astype(float)).ravel().tolist()
    return found


def _flat(value: Any) -> list[float]:
    return [number for part in value for number in _flat(part)] if isinstance(value, list | tuple) else [value]


def _are_close(name: str, ours: list[float], theirs: list[float]) -> bool:
    share = 0.0 if name in TOLERANCES or name in _EXACT else _LOGGED_SHARE
    pairs, limit = zip(ours, theirs, strict=False), TOLERANCES.get(name, share)
    return len(ours) == len(theirs) and all(math.isclose(a, b, rel_tol=share, abs_tol=limit) for a, b in pairs)


def _show(values: list[float] | None) -> str:
    return "nothing" if values is None else ", ".join(f"{value:g}" for value in values[:_MOST_NAMED])
