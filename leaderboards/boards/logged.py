"""Runs -> what they have logged over the epochs: a metric's mean over seeds; a run's attention, and heads, by layer."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suite.base.errors import RecordError
from suite.base.files import mark_of
from suite.store.run_directory import RunDirectory

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


@dataclass(frozen=True)
class LayerCurves:
    """A quantity of one run's heads over its epochs: (times, heads, ...) for each layer."""

    epochs: Floats
    layers: tuple[Floats, ...]

    def means(self) -> list[Floats]:
        """The mean over each layer's heads, (times,); NaN where all heads were pruned."""
        nothing = np.full(len(self.epochs), np.nan)
        return [layer.mean(axis=1) if layer.shape[1] else nothing for layer in self.layers]


@dataclass(frozen=True)
class HeadPaths:
    """Where a run's Gaussian heads were, by layer: ``centers`` (times, heads, 2) as (rows, columns) from the query, and
    ``precisions`` (times, heads, 2, 2)."""

    epochs: Floats
    centers: tuple[Floats, ...]
    precisions: tuple[Floats, ...]


def read_curve(runs: Iterable[RunDirectory], metric: str) -> Curve | None:
    """The metric over the runs that logged it, at their common epochs; None where there is none. By epoch, as the
    candidates of a search may differ in their steps."""
    read = [_parse_scalars(run.path, mark_of(run.metrics_path)).get(metric) for run in runs]
    logged = [dict(found.tolist()) for found in read if found is not None]
    epochs = sorted(set.intersection(*map(set, logged))) if logged else []
    if not epochs:
        return None
    values = np.array([[its_values[epoch] for epoch in epochs] for its_values in logged])
    return Curve(np.array(epochs), values.mean(axis=0), values.min(axis=0), values.max(axis=0), len(logged))


@functools.lru_cache(maxsize=_MOST_KEPT)
def _parse_scalars(path: Path, version: object) -> Mapping[str, Floats]:
    """(epoch, value) of each metric that a run has logged, (times, 2). All figures and pages share one parsed log;
    another ``version`` of the file is parsed again."""
    by_step: dict[int, dict[str, Any]] = {}
    for line in RunDirectory(path).read_metrics():
        by_step.setdefault(line["step"], {}).update(line)
    found: dict[str, list[tuple[float, float]]] = {}
    for line in (by_step[step] for step in sorted(by_step) if "epoch" in by_step[step]):
        for name, value in line.items():
            if isinstance(value, int | float):
                found.setdefault(name, []).append((line["epoch"], value))
    return {name: np.array(points, dtype=np.float64) for name, points in found.items()}


def read_paths(run: RunDirectory) -> HeadPaths | None:
    """Where the Gaussian heads of one run were over its training; None where it has logged none.

    Raises:
        RecordError: its lines do not fit each other.
    """
    centers, precisions = read_layers(run, "centers"), read_layers(run, "precisions")
    if centers is None or precisions is None:
        return None
    shapes = [[layer.shape[:2] for layer in of.layers] for of in (centers, precisions)]
    if shapes[0] != shapes[1] or not np.array_equal(centers.epochs, precisions.epochs):
        why = "expected centers and precisions of the same heads at the same epochs"
        raise RecordError(f"{run.metrics_path}: {why}. Delete the run's folder and train it again.")
    num = len(centers.epochs)
    return HeadPaths(
        centers.epochs,
        tuple(layer.reshape(num, -1, 2) for layer in centers.layers),  # also where all heads were pruned
        tuple(layer.reshape(num, -1, 3)[..., [[0, 1], [1, 2]]] for layer in precisions.layers),
    )


def read_layers(run: RunDirectory, name: str) -> LayerCurves | None:
    """Read what one run has logged of its heads, such as ``nonlocality`` or ``gates``; None where it has logged none.
    RecordError if the lines do not fit each other."""
    lines = list({line["step"]: line for line in run.read_metrics() if line.get(name)}.values())
    if not lines:
        return None
    try:
        layers = zip(*(line[name] for line in lines), strict=True)
        values = tuple(np.array(layer, dtype=np.float64) for layer in layers)
        return LayerCurves(np.array([line["epoch"] for line in lines]), values)
    except (KeyError, ValueError) as error:
        why = f"expected an epoch, and {name} of the same layers and heads, in all lines"
        raise RecordError(f"{run.metrics_path}: {why}. Delete the run's folder and train it again.") from error
