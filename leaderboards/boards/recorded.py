"""Run of kind "maps" -> the attention that it has recorded, in the file that ``suite.training.measure.maps`` writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from suite.base.errors import RecordError
from suite.base.files import sha256_of
from suite.base.reading import read_json
from suite.store.run_directory import RunDirectory

Array = NDArray[Any]
When = Literal["before", "after"]


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

    def mass_one_step_away(self, when: When, layer: int) -> float | None:
        """The percentage of a patch's attention that goes to those beside it, averaged over patches and heads."""
        between = self.of_layer(when, layer, "between")
        if between is None:
            return None
        places = np.stack(np.divmod(np.arange(len(between)), self.grid[1]), axis=1)
        steps = np.abs(places[:, None] - places).max(axis=-1)
        return 100 * float(between.astype(np.float64)[steps == 1].sum()) / len(between)


def read_recorded(run: RunDirectory, kinds: Iterable[str]) -> Recorded | None:
    """The tensors that these ``kinds`` name ("central", "gates", ...); None where the run has recorded none
    of them. RecordError if the file cannot be read, or is not the one that the run has left."""
    if not run.maps_path.exists():
        return None
    kinds = tuple(kinds)
    result = run.read_result()
    try:
        expected = "" if result is None else result.maps_sha256  # "" is from before there was one
        found = sha256_of(run.maps_path)  # fails if the path is no file
        if expected and found != expected:
            raise ValueError(f"it was damaged or changed, its SHA-256 is {found} and its result says {expected}")
        with safe_open(run.maps_path, framework="numpy") as file:
            about = {key: read_json(value) for key, value in (file.metadata() or {}).items()}
            about = about.get("about", about)  # older files have an entry for each
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys() if name.endswith(kinds)}  # noqa: SIM118
        rows, columns = about["grid"]
        layers, num_images = tuple(about["layers"]), about["num_images"]
        queries = tuple((row, column) for row, column in about.get("queries", ()))  # not of the first such files
        return Recorded(layers, (rows, columns), num_images, arrays, queries) if arrays else None
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"cannot read {run.maps_path}: {error}. Delete the run's folder; the next grid records its maps again."
        ) from error
