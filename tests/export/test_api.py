"""The suite from Python: its frames say what the files say, and its networks are those that were trained."""

import csv
import json
import textwrap
from pathlib import Path

import pytest
import torch

import suite.api
from leaderboards.boards.board import make_leaderboard
from leaderboards.text.csv_files import render_long_csv
from suite.api import load_cells, load_model, load_runs, read_curves
from suite.base.errors import RecordError, RunError, SpecError
from suite.papers import get_suite
from suite.store.run_directory import RunDirectory

MICRO = get_suite("sample_efficiency").profile("smoke").experiments()[0]
FIELDS = {name: getattr(MICRO, name) for name in ("dataset", "image_size", "recipe", "train_fraction")}


@pytest.fixture
def store(make_run, tmp_path):
    """Two finished runs of one cell of sample_efficiency, one that has begun, and a folder that holds none."""
    for seed, top1 in ((0, 40.0), (1, 44.0)):
        run, _ = make_run(
            tmp_path / "runs",
            MICRO.model,
            dict(MICRO.model_options),
            result={"top1_percent": top1},
            seed=seed,
            **FIELDS,
        )
    for step in (1, 2):
        run.append_metrics({"step": step, "loss": 2.0 / step})
    begun, _ = make_run(tmp_path / "runs", "convit_micro", {"locality_strength": 2.0})
    begun.result_path.unlink()
    (tmp_path / "runs/experiments/broken/seed-0").mkdir(parents=True)
    return tmp_path / "runs"


def test_a_line_a_run_says_what_its_files_say(store):
    runs = load_runs(store).set_index("run")
    assert len(runs) == 4
    assert runs.state.to_dict() == {
        f"{MICRO.model}-{MICRO.configuration_id}/seed-0": "done",
        f"{MICRO.model}-{MICRO.configuration_id}/seed-1": "done",
        "broken/seed-0": "failed",
        next(name for name in runs.index if name.startswith("convit")): "new",
    }
    line = runs.loc[f"{MICRO.model}-{MICRO.configuration_id}/seed-1"]
    written = json.loads(Path(line.path, "result.json").read_text())
    del written["sha256"]  # the seal, which is no part of the result
    experiment = written.pop("experiment")
    told = {name: value for name, value in written.items() if value not in (None, [])}
    assert {name: line[name] for name in told} == told
    assert line.learning_rate == experiment["recipe"]["learning_rate"]
    assert runs.locality_strength.dropna().tolist() == [2.0]


def test_an_option_that_is_called_as_a_column_leaves_the_runs_own_column(tmp_path):
    options = {"path": 1, "state": 2, "run": 3, "epochs": -4.0, "dataset": 5}
    experiment = MICRO.model_copy(model_options=options)
    run = RunDirectory.of(tmp_path, experiment)
    run.create(experiment)
    (line,) = load_runs(tmp_path).to_dict("records")
    assert (line["run"], line["path"], line["state"]) == (run.id, str(run.path), "new")
    assert (line["epochs"], line["dataset"]) == (MICRO.recipe.epochs, MICRO.dataset)


def test_a_line_a_cell_says_what_the_long_csv_says(store):
    cells = load_cells(store, "sample_efficiency", "smoke")
    leaderboard = make_leaderboard(get_suite("sample_efficiency"), "smoke", store)
    written = list(csv.DictReader(render_long_csv(leaderboard).splitlines()))
    assert cells.row.tolist() == [line["row"] for line in written]
    assert cells.status.tolist() == [line["status"] for line in written]
    assert sorted(cells["mean"].dropna()) == sorted(float(line["mean"]) for line in written if line["mean"])
    assert 42.0 in cells["mean"].values


def test_curves_are_the_logged_lines(store):
    path = load_runs(store).query("seed == 1").path.item()
    assert read_curves(path).to_dict("list") == {"step": [1, 2], "loss": [2.0, 1.0]}
    with pytest.raises(RecordError, match="it has no experiment"):
        read_curves(store / "experiments/broken/seed-0")


def test_a_runs_network_is_the_one_that_was_trained(make_run, tmp_path):
    run, network = make_run(tmp_path, "convit_micro", {})
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(load_model(str(run.path))(images), network(images))
    run.result_path.unlink()
    with pytest.raises(RunError, match="expected a finished run"):
        load_model(run.path)


def test_a_store_that_is_not_there_is_no_empty_frame(tmp_path):
    for load in (load_runs, lambda store: load_cells(store, "sample_efficiency")):
        with pytest.raises(SpecError, match="there is no run store"):
            load(tmp_path / "nowhere")


def test_the_documented_example_runs(store, monkeypatch):
    monkeypatch.chdir(store.parent)
    monkeypatch.setenv("MPLBACKEND", "agg")
    example = "\n".join(line for line in suite.api.__doc__.splitlines() if line.startswith("    "))
    names = {"images": torch.randn(2, 3, 32, 32)}
    exec(textwrap.dedent(example), names)
    assert names["logits"].shape == (2, 10)
    assert names["best"].top1_percent == 44.0
