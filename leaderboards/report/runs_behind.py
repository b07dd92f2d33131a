"""Leaderboard -> the runs behind each cell, and the command that makes them again."""

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboards.boards.board import Leaderboard
from leaderboards.boards.cells import Cell
from leaderboards.boards.metrics import is_accuracy, read_metric
from leaderboards.boards.usable_runs import short_commit
from leaderboards.text.labels import label
from leaderboards.text.notation import NOTHING
from suite.base.arguments import program, spell_seeds
from suite.base.errors import RecordError
from suite.cost.costs import write_hours, write_known
from suite.spec.experiment import Experiment, experiment_fields
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.store.run_status import name_state

METRIC = "metric"  # stands for the name of the one that the cell shows
COLUMNS = (
    "seed", METRIC, "device hours", "kWh", "peak GB", "images/s", "loader", "device", "commit",
    "finished",
)  # fmt: skip


@dataclass(frozen=True)
class RunsOfCell:
    """``runs`` has a line for each run that is shown, in the order of ``COLUMNS``; ``problems`` those that are not."""

    metric: str
    run: str  # the configurations, several where a search's seeds chose differently
    command: str
    runs: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...]


class RunReader:
    """Reads each run of a leaderboard once, whichever cells it fills."""

    def __init__(self, leaderboard: Leaderboard) -> None:
        self._leaderboard = leaderboard
        self._results: dict[str, Result | None] = {}
        fields = [experiment_fields(experiment) for experiment in leaderboard.profile.experiments()]
        names = dict.fromkeys(name for of in fields for name in of)
        values = {name: {str(of[name]) for of in fields if name in of} for name in names}
        # by which ``--only`` can tell the profile's experiments apart, without their seed
        self._varied = [name for name, found in values.items() if len(found) > 1 and name != "seed"]
        # what enters each custom model, by ``Experiment.configuration_id``: nothing for the papers', which come last
        entering = {model.name: ["--challenger", *model.arguments] for model in leaderboard.suite.custom_models}
        entries = sorted(leaderboard.profile.entries, key=lambda entry: not entry.custom_model)
        entered = [(one, entering.get(entry.custom_model, [])) for entry in entries for one in entry.candidates]
        self._entered = {experiment.configuration_id: arguments for experiment, arguments in entered}

    def of_cell(self, cell: Cell) -> RunsOfCell:
        """The runs of a measured cell."""
        results = map(self._read, cell.provenance.runs.values())
        failures = [
            f"seed {failure.seed}, {name_state(failure.state)}: {failure.reason}" for failure in cell.coverage.failures
        ]
        return RunsOfCell(
            metric=label(cell.metric, cell.metric),
            run=" and ".join(cell.provenance.configurations),
            command=self._command(cell.provenance.experiments),
            runs=tuple(_format_run(result, cell.metric) for result in results if result is not None),
            problems=(*failures, *cell.coverage.waiting),
        )

    def _read(self, run: RunDirectory) -> Result | None:
        if run.id not in self._results:
            with contextlib.suppress(RecordError):  # the leaderboard names it
                self._results[run.id] = run.read_result()
        return self._results.get(run.id)

    def _command(self, experiments: Sequence[Experiment]) -> str:
        """The command; its filters name every field in which these experiments differ from others of the profile."""
        grid = program("grid", "launchers/grid.py")
        fields = [experiment_fields(experiment) for experiment in experiments]
        only = list(dict.fromkeys(f"{name}={of[name]}" for name in self._varied for of in fields))
        words = ["--suite", self._leaderboard.suite.cli_name, "--profile", self._leaderboard.profile_name]
        words += self._entered.get(experiments[0].configuration_id, [])
        words += ["--seeds", spell_seeds(self._leaderboard.collection.seeds), *(["--only", *only] if only else [])]
        return f"{'python ' if grid.endswith('.py') else ''}{grid} {shlex.join(words)}"


def _format_run(result: Result, metric: str) -> tuple[str, ...]:
    how = f" x {result.num_ranks}" if result.num_ranks > 1 else ""
    how += ", compiled" if result.compiled else ""
    value = read_metric(result, metric)
    shown = NOTHING if value is None else f"{value:.2f}" if is_accuracy(metric) else f"{value:.5g}"
    return (
        str(result.experiment.seed), shown, write_hours(result.device_hours),
        write_known(result.energy_kwh), write_known(result.peak_memory_gb),
        f"{result.images_per_s:,.1f}", result.loader, f"{result.device}{how}", short_commit(result.commit),
        result.finished_at[:19],
    )  # fmt: skip
