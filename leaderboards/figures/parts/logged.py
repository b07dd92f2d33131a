"""Runs -> what they have logged over the epochs: a metric's mean over seeds; a run's attention, and heads, by layer."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suite.base.errors import RecordError
from suite.spec.profile import Place
from suite.store.protocol_changes import void_metrics
from suite.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from leaderboards.boards.board import Leaderboard

Floats = NDArray[np.float64]
_MOST_KEPT = 2048  # runs whose numbers are kept at hand


@dataclass(frozen=True)
class Curve:
    """A metric at the epochs at which all of ``num_seeds`` runs logged it: mean, lowest and highest."""

    epochs: Floats
    mean: Floats
    low: Floats
    high: Floats
    num_seeds: int

    def begun_at(self, epoch: float) -> Curve:
        """The same curve of a training that began when another had taken so many epochs."""
        return replace(self, epochs=self.epochs + epoch)


@dataclass(frozen=True)
class LayerCurves:
    """Of one run: per layer (times, heads); a layer without heads has none."""

    epochs: Floats
    layers: tuple[Floats, ...]

    def means(self) -> list[Floats]:
        """Per layer over its heads, (times,); NaN where all heads were pruned."""
        nothing = np.full(len(self.epochs), np.nan)
        return [layer.mean(axis=1) if layer.shape[1] else nothing for layer in self.layers]


@dataclass(frozen=True)
class HeadPaths:
    """Of one run, by its layers' Gaussian heads: ``centers`` (times, heads, 2) as (rows, columns) from the query, and
    ``precisions`` (times, heads, 2, 2)."""

    epochs: Floats
    centers: tuple[Floats, ...]
    precisions: tuple[Floats, ...]


def read_curve(runs: Iterable[RunDirectory], metric: str) -> Curve | None:
    """The metric over the runs that logged it, by epoch, as a search's candidates may differ in their steps; None where
    none did, or at no common epoch."""
    logged = [found for run in runs if (found := _read_scalars(run).of(metric))]
    epochs = sorted(set.intersection(*map(set, logged))) if logged else []
    if not epochs:
        return None
    values = np.array([[its_values[epoch] for epoch in epochs] for its_values in logged])
    return Curve(np.array(epochs), values.mean(axis=0), values.min(axis=0), values.max(axis=0), len(logged))


def curve_behind(leaderboard: Leaderboard, place: Place, metric: str, after_parents: bool = False) -> Curve | None:
    """The mean of the finished runs of a cell; None where there is none, or a seed failed.

    Args:
        leaderboard: has the cell.
        place: of the cell.
        metric: one of those in ``metrics.jsonl``.
        after_parents: begin where the training ended that these runs took over.
    """
    cell = leaderboard.cell(place)
    if cell is None or not cell.is_usable:
        return None
    curve, experiment = read_curve(cell.provenance.runs.values(), metric), cell.provenance.experiment
    return curve and (curve.begun_at(experiment.epochs_before) if experiment and after_parents else curve)


def name_num_seeds(curves: Iterable[Curve]) -> str:
    """The note that says what lines and bands are."""
    num = count_seeds(curves)
    return "One seed." if num == "1" else f"Lines: mean of {num} seeds; bands: from the lowest to the highest."


def count_seeds(curves: Iterable[Curve]) -> str:
    """Such as "8", or "6 to 8"."""
    seeds = {curve.num_seeds for curve in curves}
    return str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


@dataclass(frozen=True)
class _Scalars:
    """The numbers that a run has logged, by their metric over ``epochs``: NaN where it was not among them."""

    epochs: Floats
    values: Mapping[str, Floats]

    def of(self, metric: str) -> dict[float, float]:
        """One metric by epoch; nothing where it was never logged."""
        if metric not in self.values:
            return {}
        known = ~np.isnan(self.values[metric])  # what is logged is finite
        return dict(zip(self.epochs[known].tolist(), self.values[metric][known].tolist(), strict=True))


def _read_scalars(run: RunDirectory) -> _Scalars:
    """Parse a log once for all figures and, where pages are served, for all of these."""
    try:
        found = run.metrics_path.stat()
    except OSError:  # there is none, or its reading says why
        return _parse_scalars(run.path, ())
    return _parse_scalars(run.path, (found.st_mtime_ns, found.st_size, found.st_ino))


@functools.lru_cache(maxsize=_MOST_KEPT)
def _parse_scalars(path: Path, mark: tuple[int, ...]) -> _Scalars:
    """Parse the log that ``mark`` tells from what it was before."""
    by_step: dict[int, dict[str, Any]] = {}
    for line in RunDirectory(path).read_metrics():
        by_step.setdefault(line["step"], {}).update(line)
    lines = [by_step[step] for step in sorted(by_step)]
    names = {name for line in lines for name, value in line.items() if isinstance(value, int | float)}
    values = {name: np.array([line.get(name, np.nan) for line in lines], dtype=np.float64) for name in names}
    return _Scalars(values.get("epoch", np.full(len(lines), np.nan)), values)


def read_layers(run: RunDirectory, quantity: str) -> LayerCurves | None:
    """``nonlocality`` or ``gates`` of one run; None where it has logged none that still holds."""
    result = run.read_result()
    if result is not None and quantity in void_metrics(result):
        return None
    found = _read_by_layer(run, quantity)
    return found and LayerCurves(found[0], tuple(found[1]))


def read_paths(run: RunDirectory) -> HeadPaths | None:
    """Where the Gaussian heads of one run were over its training; None where it has logged none.

    Raises:
        RecordError: its lines do not fit each other.
    """
    centers, precisions = _read_by_layer(run, "centers"), _read_by_layer(run, "precisions")
    if centers is None or precisions is None:
        return None
    if _when_and_how_many(*centers) != _when_and_how_many(*precisions):
        why = "expected centers and precisions of the same heads at the same epochs"
        raise RecordError(f"{run.metrics_path}: {why}. Delete the run's folder and train it again.")
    num = len(centers[0])
    return HeadPaths(
        centers[0],
        tuple(layer.reshape(num, -1, 2) for layer in centers[1]),  # also where all heads were pruned
        tuple(layer.reshape(num, -1, 3)[..., [[0, 1], [1, 2]]] for layer in precisions[1]),
    )


def _when_and_how_many(epochs: Floats, layers: list[Floats]) -> tuple[list[float], list[tuple[int, ...]]]:
    return epochs.tolist(), [layer.shape[:2] for layer in layers]


def _read_by_layer(run: RunDirectory, name: str) -> tuple[Floats, list[Floats]] | None:
    """Epochs (times,), and per layer what was logged of its heads (times, heads, ...); None where nothing was.

    Raises:
        RecordError: its lines do not fit each other.
    """
    lines = list({line["step"]: line for line in run.read_metrics() if line.get(name)}.values())
    if not lines:
        return None
    try:
        layers = zip(*(line[name] for line in lines), strict=True)
        return np.array([line["epoch"] for line in lines]), [np.array(layer, dtype=np.float64) for layer in layers]
    except (KeyError, ValueError) as error:
        why = f"expected an epoch, and {name} of the same layers and heads, in all lines"
        raise RecordError(f"{run.metrics_path}: {why}. Delete the run's folder and train it again.") from error
