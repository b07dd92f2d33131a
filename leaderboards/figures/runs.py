"""A place in a table -> the runs behind its cell, and what these have logged over the epochs and recorded as maps."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from suite.errors import RecordError
from suite.files import sha256_of
from suite.profiles import Place
from suite.protocol_changes import void_metrics
from suite.records import RunDirectory, find_runs

if TYPE_CHECKING:
    from leaderboards.boards import Leaderboard

Array = NDArray[Any]
Floats = NDArray[np.float64]
When = Literal["before", "after"]
Chosen = Mapping[str, tuple[int, RunDirectory]]  # title -> (seed, run)
_MOST_KEPT = 2048  # runs whose numbers are kept at hand
_NO_BREAK = "\N{NO-BREAK SPACE}"


def runs_behind(leaderboard: Leaderboard, place: Place, store: Path) -> dict[int, RunDirectory]:
    """The finished runs whose values the cell shows, by seed in ascending order."""
    cell = leaderboard.cell(place)
    if cell is None or cell.provenance.experiment is None:
        return {}
    runs = find_runs(store, cell.provenance.experiment)
    return {seed: runs[seed] for seed in sorted(cell.estimate.values) if seed in runs}


def first_runs(leaderboard: Leaderboard, places: Mapping[str, Place], store: Path) -> Chosen:
    """The run of the lowest finished seed for each title that has one."""
    runs = {title: runs_behind(leaderboard, place, store) for title, place in places.items()}
    return {title: min(found.items()) for title, found in runs.items() if found}


def name_seeds(runs: Chosen) -> str:
    """The note that single runs are shown, ``One run of each model, seed 0.``, its numbers not parted from "seed"."""
    seeds = {title: seed for title, (seed, _) in runs.items()}
    if len(set(seeds.values())) > 1:
        return f"One run of each model: {', '.join(f'{title} seed{_NO_BREAK}{seed}' for title, seed in seeds.items())}."
    of_each = "One run of each model" if len(seeds) > 1 else "One run"
    return f"{of_each}, seed{_NO_BREAK}{min(seeds.values())}."


def name_missing(leaderboard: Leaderboard, places: Mapping[str, Place], drawn: Iterable[str]) -> str:
    """The note about what this profile plans but cannot show yet."""
    drawn = set(drawn)
    missing = [title for title, place in places.items() if title not in drawn and leaderboard.cell(place) is not None]
    return f"Not there yet: {', '.join(missing)}." if missing else ""


# -- metrics.jsonl: a metric's mean over seeds, and a run's attention by layer


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
    logged = [found for run in runs if (found := _read_scalars(run).of(metric)) is not None]
    steps = functools.reduce(np.intersect1d, (its_steps for its_steps, _, _ in logged)) if logged else np.array([])
    if not len(steps):
        return None
    values = np.array([its_values[np.isin(its_steps, steps)] for its_steps, _, its_values in logged])
    its_steps, epochs, _ = logged[0]
    low, high = values.min(axis=0), values.max(axis=0)
    return Curve(epochs[np.isin(its_steps, steps)], values.mean(axis=0), low, high, len(logged))


@dataclass(frozen=True)
class _Scalars:
    """The numbers that a run has logged, by their metric over ``steps``: NaN where it was not among them."""

    steps: Array
    epochs: Floats
    values: Mapping[str, Floats]

    def of(self, metric: str) -> tuple[Array, Floats, Floats] | None:
        """Steps, epochs and values of one metric; None where it was never logged."""
        if metric not in self.values:
            return None
        known = ~np.isnan(self.values[metric])  # what is logged is finite
        return self.steps[known], self.epochs[known], self.values[metric][known]


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
    steps = np.array(sorted(by_step), dtype=np.int64)
    return _Scalars(steps, values.get("epoch", np.full(len(steps), np.nan)), values)


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


# -- maps.safetensors of a run of kind "maps"; ``suite.training.maps`` says what stands in the file


@dataclass(frozen=True)
class Recorded:
    """The maps of one run. ``grid`` is (rows, columns) of patches; ``arrays`` has the file's tensors by name;
    ``queries`` are (row, column) of those whose averages are recorded."""

    layers: tuple[str, ...]
    grid: tuple[int, int]
    num_images: int
    arrays: dict[str, Array]
    queries: tuple[tuple[int, int], ...] = ()

    @property
    def query(self) -> tuple[int, int]:
        """(row, column) of the central query."""
        return self.grid[0] // 2, self.grid[1] // 2

    @property
    def moments(self) -> tuple[When, ...]:
        """Before training, and after it where there was any."""
        return tuple(when for when in get_args(When) if any(name.startswith(f"{when}/") for name in self.arrays))

    def of_layer(self, when: When, layer: int, what: str) -> Array | None:
        """One tensor; None where this layer has none, such as gates, or where there is no such layer."""
        return self.arrays.get(f"{when}/{layer:02d}/{what}")


def read_recorded(run: RunDirectory, kinds: Iterable[str]) -> Recorded | None:
    """The tensors that these ``kinds`` name ("central", "gates", ...); None where the run has recorded no maps.

    Raises:
        RecordError: if the file cannot be read, or is not the one that the run has left.
    """
    if not run.maps_path.exists():
        return None
    kinds = tuple(kinds)
    result = run.read_result()
    try:
        _check_maps(run.maps_path, "" if result is None else result.maps_sha256)
        with safe_open(run.maps_path, framework="numpy") as file:
            about = {key: json.loads(value) for key, value in (file.metadata() or {}).items()}
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys() if name.endswith(kinds)}  # noqa: SIM118
        rows, columns = about["grid"]
        queries = tuple((row, column) for row, column in about.get("queries", ()))  # not of the first such files
        return Recorded(tuple(about["layers"]), (rows, columns), about["num_images"], arrays, queries)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise RecordError(
            f"cannot read {run.maps_path}: {error}. Delete the run's folder; the next grid records its maps again."
        ) from error


def _check_maps(path: Path, expected: str) -> None:
    """Compare a file of maps, which has to be a file, with its result's digest; "" is from before there was one."""
    found = sha256_of(path)
    if expected and found != expected:
        raise ValueError(f"it was damaged or changed, its SHA-256 is {found} and its result says {expected}")
