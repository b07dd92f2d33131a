"""A suite of two models in a table of our own, and hand-made logs and maps of their runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from leaderboards.boards.board import Leaderboard, make_leaderboard
from leaderboards.boards.recorded import Recorded
from suite.spec.experiment import Experiment, Kind
from suite.spec.figures import Figure
from suite.spec.profile import Entry, Place, Profile
from suite.spec.recipe import Recipe
from suite.spec.suite import Headline, Suite, Table
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory

MODELS = ("deit", "convit")
RECIPE = Recipe(name="short", epochs=2, batch_size=8, learning_rate=0.1)
QUERIES = ((4, 4), (0, 4))
Arrays = dict[str, NDArray[Any]]


def experiment_of(model: str) -> Experiment:
    return Experiment(model=model, dataset="cifar10", image_size=32, recipe=RECIPE)


@pytest.fixture
def places() -> dict[str, Place]:
    """Of the two models' training."""
    return {model: Place(row=(model,), column="top1") for model in MODELS}


@pytest.fixture
def map_places() -> dict[str, Place]:
    """Of their runs of kind "maps"."""
    return {model: Place(row=(f"{model} maps",), column="top1") for model in MODELS}


@pytest.fixture
def leave_run(tmp_path: Path) -> Callable[..., RunDirectory]:
    """Leaves a finished run of a model in the store, with these lines in its log, of kind "maps" where
    it has arrays."""

    def leave_run(
        model: str,
        seed: int = 0,
        lines: Sequence[Mapping[str, Any]] = (),
        arrays: Arrays | None = None,
        kind: Kind = "training",
    ) -> RunDirectory:
        experiment = experiment_of(model).with_seed(seed)
        if arrays is not None or kind != "training":
            experiment = experiment.then("maps" if arrays is not None else kind)
        run = RunDirectory.of(tmp_path, experiment)
        run.create(experiment)
        for line in lines:
            run.append_metrics(dict(line))
        if arrays is not None:
            num_layers = 1 + max(int(name.split("/")[1]) for name in arrays if "/" in name)
            about = {"layers": [f"layers.{i}" for i in range(num_layers)], "grid": [8, 8], "num_images": 100}
            about["queries"] = QUERIES
            save_file(arrays, run.maps_path, {key: json.dumps(value) for key, value in about.items()})
        num_steps = experiment.num_steps(100)
        run.write_result(
            Result(
                experiment=experiment, top1_percent=50.0 + seed, top5_percent=90.0, test_loss=1.0,
                best_top1_percent=50.0 + seed, num_parameters=1000, num_train_images=100, num_test_images=100,
                num_steps=num_steps, images_seen=num_steps * experiment.recipe.batch_size,
                train_s=1.0, images_per_s=80.0, device="cpu", num_ranks=1, num_attempts=1,
                protocol_version=PROTOCOL_VERSION, commit="0" * 40, finished_at="2000-01-01T00:00:00+00:00",
            )
        )  # fmt: skip
        return run

    return leave_run


@pytest.fixture
def board_of(tmp_path: Path) -> Callable[[Figure], Leaderboard]:
    """The board, from the runs in the store, of the suite that has this figure."""

    def board_of(figure: Figure) -> Leaderboard:
        runs = [(model, experiment_of(model)) for model in MODELS]
        runs += [(f"{model} maps", experiment_of(model).then("maps")) for model in MODELS]
        runs.append(("deit pruned", experiment_of("deit").then("pruning")))
        entries = [Entry(row=(name,), columns={"top1": "top1_percent"}, experiment=e) for name, e in runs]
        place = Place(row=("deit",), column="top1")
        suite = Suite(
            name="two_models",
            paper="ConViT",
            item="Figs 5 and 6",
            question="Where do the heads look?",
            tables=(Table(name="models", item="ours", row_keys=("model",), columns=("top1",), ranked="in_columns"),),
            profiles={"laptop": Profile.laptop(entries, "tiny images")},
            headline=Headline(text="DeiT over itself", better=place, baseline=place),
            figures=(figure,),
        )
        return make_leaderboard(suite, "laptop", tmp_path)

    return board_of


@pytest.fixture
def make_arrays() -> Callable[..., Arrays]:
    """Arrays as a run of kind "maps" records them: maps that sum to one, another for each head and layer."""

    def make_arrays(num_layers: int, num_heads: int, num_gated: int = 0) -> Arrays:
        random = np.random.default_rng(0)
        arrays: Arrays = {"images": random.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)}
        for at in (f"{when}/{layer:02d}" for when in ("before", "after") for layer in range(num_layers)):
            maps = random.random((4, num_heads, 8, 8)).astype(np.float32)
            maps /= maps.sum(axis=(-1, -2), keepdims=True)
            arrays[f"{at}/images"] = maps
            arrays[f"{at}/central"] = maps.mean(axis=0)
            arrays[f"{at}/queries"] = random.random((num_heads, len(QUERIES), 8, 8)).astype(np.float32) / 64
            arrays[f"{at}/between"] = (random.random((64, 64)) / 32).astype(np.float16)
            arrays[f"{at}/centers"] = random.normal(size=(num_heads, 2)).astype(np.float32)
            if int(at[-2:]) < num_gated:
                arrays[f"{at}/gates"] = random.random(num_heads).astype(np.float32)
        return arrays

    return make_arrays


@pytest.fixture
def record(make_arrays: Callable[..., Arrays]) -> Callable[..., Recorded]:
    """The same as read from a file."""

    def record(num_layers: int, num_heads: int, num_gated: int = 0) -> Recorded:
        arrays = make_arrays(num_layers, num_heads, num_gated)
        return Recorded(tuple(f"layers.{i}" for i in range(num_layers)), (8, 8), 100, arrays, QUERIES)

    return record
