"""``metrics.jsonl`` -> what is drawn over the epochs: a metric's mean over seeds, and a run's attention by layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from suite.protocol_changes import void_metrics
from suite.records import RunDirectory

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A metric at the steps that all of ``num_seeds`` runs logged: mean, lowest and highest."""

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
    """The metric over the runs that logged it; None where none did, or at no common step."""
    logged = [{line["step"]: line for line in run.read_metrics() if line.get(metric) is not None} for run in runs]
    logged = [lines for lines in logged if lines]
    steps = sorted(set.intersection(*map(set, logged))) if logged else []
    if not steps:
        return None
    values = np.array([[lines[step][metric] for step in steps] for lines in logged], dtype=np.float64)
    epochs = np.array([logged[0][step]["epoch"] for step in steps], dtype=np.float64)
    return Curve(epochs, values.mean(axis=0), values.min(axis=0), values.max(axis=0), len(logged))


def read_layers(run: RunDirectory, quantity: str) -> LayerCurves | None:
    """``nonlocality`` or ``gates`` of one run; None where it has logged none that still holds."""
    result = run.read_result()
    if result is not None and quantity in void_metrics(result):
        return None
    lines = list({line["step"]: line for line in run.read_metrics() if line.get(quantity)}.values())
    if not lines:
        return None
    epochs = np.array([line["epoch"] for line in lines], dtype=np.float64)
    layers = (np.array([line[quantity][i] for line in lines], dtype=np.float64) for i in range(len(lines[0][quantity])))
    return LayerCurves(epochs, tuple(layers))


def read_paths(run: RunDirectory) -> HeadPaths | None:
    """Where the Gaussian heads of one run were over its training; None where it has logged none."""
    lines = list({line["step"]: line for line in run.read_metrics() if line.get("centers")}.values())
    if not lines:
        return None
    epochs = np.array([line["epoch"] for line in lines], dtype=np.float64)
    numbers = range(len(lines[0]["centers"]))
    centers = [np.array([line["centers"][i] for line in lines], dtype=np.float64) for i in numbers]
    entries = [np.array([line["precisions"][i] for line in lines], dtype=np.float64) for i in numbers]
    return HeadPaths(
        epochs,
        tuple(layer.reshape(len(lines), -1, 2) for layer in centers),  # also where all heads were pruned
        tuple(layer.reshape(len(lines), -1, 3)[..., [[0, 1], [1, 2]]] for layer in entries),
    )
