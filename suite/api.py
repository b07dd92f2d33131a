"""The suite from Python, in four functions: a store's runs and cells as pandas frames, a run's curves and its network.

    from suite.api import load_cells, load_model, load_runs, read_curves

    runs = load_runs("runs")                                        # a line a run, finished or not
    cells = load_cells("runs", "sample_efficiency", "laptop")       # a line a cell of the suite's tables
    best = runs.loc[runs.top1_percent.idxmax()]
    read_curves(best.path).dropna(subset="loss").plot(x="step", y="loss")
    logits = load_model(best.path)(images)                          # ready for inference, on the CPU

What is read is what the leaderboards read: results that no longer hold have state "void". torch is imported by
``load_model`` alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from imagesets.prepared import find_info
from leaderboards.boards.board import check_store, make_leaderboard
from leaderboards.text.csv_files import render_long_csv
from suite.base.errors import RecordError
from suite.papers import get_suite
from suite.spec.experiment import flat_fields
from suite.store.run_directory import RunDirectory
from suite.store.run_status import find_run_status
from suite.store.run_store import list_runs

if TYPE_CHECKING:
    from torch import nn

_FIRST = ("run", "state", "reason", "model", "dataset", "train_fraction", "seed", "top1_percent", "top5_percent")
_LAST = ("path",)


def load_runs(store: str | Path) -> pd.DataFrame:
    """Load every run of a store, a line each, in the order of their folders; SpecError where there is no such store.

    Returns:
        Columns: ``run`` (its id), ``state`` and ``reason`` as ``suite.store.run_status`` tells them, every field that
        identifies the experiment (recipe and options flat; those of parents after "parent."), every field of
        ``suite.store.results.Result`` (missing where the run is not finished), and ``path``.
    """
    check_store(Path(store))
    lines = list(_lines(Path(store)))
    found = dict.fromkeys(name for line in lines for name in line)
    middle = [name for name in found if name not in (*_FIRST, *_LAST)]
    return pd.DataFrame(lines, columns=[*_FIRST, *middle, *_LAST])


def load_cells(store: str | Path, suite: str, profile: str = "laptop") -> pd.DataFrame:
    """Load the cells of one suite's tables at one scale, a line each: the columns of its ``.long.csv``.

    SpecError for an unknown suite, profile or store; RecordError for runs that must not be averaged.
    """
    check_store(Path(store))
    text = render_long_csv(make_leaderboard(get_suite(suite), profile, Path(store)))
    return pd.read_csv(io.StringIO(text), dtype={"row": str, "commits": str, "num_evaluations": str})


def read_curves(run: str | Path) -> pd.DataFrame:
    """Read what a run has logged, a line each logged step.

    Args:
        run: path of the run's folder, such as the ``path`` of ``load_runs``.

    Raises:
        RecordError: there is no such run, or its log cannot be read.
    """
    directory = RunDirectory(Path(run))
    if not directory.experiment_path.exists():
        raise RecordError(f"{run} is no run: it has no experiment.json. Expected RUNS/experiments/MODEL-ID/seed-N.")
    return pd.DataFrame(directory.read_metrics())


def load_model(run: str | Path) -> nn.Module:
    """Build a finished run's network with its weights, on the CPU, in inference mode.

    Args:
        run: path of the run's folder, such as the ``path`` of ``load_runs``.

    Raises:
        RunError: it is not finished, no longer holds, or has lost its weights.
        SpecError: the run trains nothing, so that it has no weights of its own.
    """
    from suite.export.folder import finished_result
    from suite.training.start import trained_network

    directory = RunDirectory(Path(run))
    experiment = finished_result(directory).experiment
    return trained_network(directory, experiment, find_info(experiment.dataset).num_classes).eval()


def _lines(store: Path) -> Iterator[dict[str, Any]]:
    for run in list_runs(store):
        line: dict[str, Any] = {"run": run.id, "path": str(run.path)}
        try:
            experiment = run.read_experiment()
        except RecordError as error:
            yield line | {"state": "failed", "reason": str(error)}
            continue
        status = find_run_status(run, experiment)
        line |= {"state": status.state, "reason": status.reason, "seed": experiment.seed}
        own = flat_fields(experiment.model_copy(model_options={}), of_parents="parent.") | line
        line = flat_fields(experiment, of_parents="parent.") | own  # an option may be called as a column is
        yield line | (status.result.model_dump(exclude={"experiment"}) if status.result else {})
