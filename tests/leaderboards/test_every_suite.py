"""Every suite's leaderboard at every scale, from made-up results whose every cell is computed here a second time."""

import csv
import io
import json
from pathlib import Path

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.text.csv_files import render_csv, render_long_csv
from leaderboards.text.markdown import render_markdown
from leaderboards.text.notation import format_signed, format_value
from leaderboards.text.terminal import print_summary
from suite.papers import find_table, get_suite, list_suites
from suite.spec.suite import ChangeFrom, Gain, MeanOf, RelativeGain
from suite.store.results import PROTOCOL_VERSION
from suite.store.run_directory import RunDirectory

NUM_SEEDS = 2
CASES = [(name, profile) for name in list_suites() for profile in (*get_suite(name).profiles, "smoke")]
SCALES = {
    "top1_fraction": ("top1_percent", 0.01),
    "top5_fraction": ("top5_percent", 0.01),
    "num_parameters_millions": ("num_parameters", 1e-6),
    "linear_gmacs": ("num_linear_macs", 1e-9),
    "linear_gflops": ("num_linear_macs", 2e-9),
}


def made_up(experiment):
    """All of a result but its experiment: known functions of the cell's id and the seed."""
    digits = [int(experiment.configuration_id[i : i + 4], 16) for i in range(0, 16, 4)]
    top1 = 10 + digits[0] / 1000 + experiment.seed
    integers = {"num_parameters": 1_000_000 + digits[1], "num_macs": digits[2], "num_linear_macs": 10**6 * digits[3]}
    num_steps = experiment.num_steps(100)
    counts = {"num_train_images": 100, "num_test_images": 100, "num_steps": num_steps}
    counts["images_seen"] = num_steps * experiment.recipe.batch_size
    return {
        **integers, **counts, "num_ranks": 1, "num_attempts": 1, "device": "cpu", "loader": "memory",
        "top1_percent": top1, "top5_percent": top1 + 15, "best_top1_percent": top1 + 1, "test_loss": digits[1] / 3e4,
        "train_s": digits[2] + 1.0, "lineage_train_s": digits[2] + 2.0, "images_per_s": digits[3] + 5.0,
        "inference_images_per_s": digits[3] + 6.0, "mean_nonlocality": digits[1] / 2e4, "mean_gate": digits[2] / 7e4,
        "num_pruned_heads": [digit % 10 for digit in digits] * 2, "device_hours": 0.5, "mfu_percent": 3.0,
        "protocol_version": PROTOCOL_VERSION, "commit": "c" * 40, "finished_at": "2000-01-01T00:00:00+00:00",
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with all runs of all suites at all scales, each written once."""
    store = tmp_path_factory.mktemp("every")
    for name, profile in CASES:
        for experiment in get_suite(name).profile(profile).experiments(range(NUM_SEEDS)):
            run = RunDirectory.of(store, experiment)
            if not run.path.exists():
                run.path.mkdir(parents=True)
                content = {"experiment": experiment.model_dump(mode="json"), **made_up(experiment)}
                run.result_path.write_text(json.dumps(content))
    return store


def metric_of(experiment, metric):
    name, scale = SCALES.get(metric, (metric, 1.0))
    found = [made_up(experiment.with_seed(seed)) for seed in range(NUM_SEEDS)]
    if name.startswith("num_pruned_heads_layer_"):
        found = [{name: run["num_pruned_heads"][int(name.rpartition("_")[2]) - 1]} for run in found]
    return sum(run[name] * scale for run in found) / NUM_SEEDS


def shown(entry):
    return max(entry.candidates, key=lambda candidate: metric_of(candidate, "top1_percent"))


def expected_cells(suite, profile, table):
    """(row, column) -> mean."""
    entries = suite.entries_of(profile, table)
    means = {(e.row, column): metric_of(shown(e), metric) for e in entries for column, metric in e.columns.items()}
    for derived in table.derived:
        for row in dict.fromkeys(entry.row for entry in entries):
            if isinstance(derived, RelativeGain):
                pair = [means.get((row, column)) for column in (derived.better, derived.baseline)]
                if None not in pair:
                    means[row, derived.column] = 100 * (pair[0] - pair[1]) / pair[1]
            elif isinstance(derived, Gain):
                pair = [means.get((row, column)) for column in (derived.better, derived.baseline)]
                if None not in pair:
                    means[row, derived.column] = pair[0] - pair[1]
            elif isinstance(derived, ChangeFrom):
                pair = [means.get((of, derived.of)) for of in (row, derived.baseline)]
                if None not in pair and row != derived.baseline:
                    means[row, derived.column] = pair[0] - pair[1]
            elif isinstance(derived, MeanOf):
                values = [means.get((row, column)) for column in derived.columns]
                if None not in values:
                    means[row, derived.column] = sum(values) / len(values)
            else:
                measured = {entry.row: metric_of(shown(entry), derived.metric) for entry in entries}
                if derived.baseline in measured:
                    means[row, derived.column] = measured[row] / measured[derived.baseline]
    return means


def expected_layout(suite, profile, table):
    """(header, rows, decimals by column)."""
    if not table.is_papers:
        rows = list(dict.fromkeys(entry.row for entry in suite.entries_of(profile, table)))
        return [*table.row_keys, *table.columns], rows, dict.fromkeys(table.columns, table.decimals)
    header, *lines = csv.reader(io.StringIO(find_table(table.name).read_text()))
    decimals = {
        name: max(len((line[i] + ".").split(".")[1]) for line in lines) if any(line[i] for line in lines) else 1
        for i, name in enumerate(header)
    }
    return header, [tuple(line[: len(table.row_keys)]) for line in lines], decimals


@pytest.mark.parametrize(("name", "profile_name"), CASES)
def test_every_cell_of_every_table_is_the_known_answer(name, profile_name, store, monkeypatch, capsys):
    suite = get_suite(name)
    leaderboard = make_leaderboard(suite, profile_name, store)
    num_cells = 0
    for table in suite.tables:
        means = expected_cells(suite, leaderboard.profile, table)
        header, rows, decimals = expected_layout(suite, leaderboard.profile, table)
        found_header, *lines = csv.reader(io.StringIO(render_csv(leaderboard.tables[table.name])))
        num_keys = len(table.row_keys)
        assert (found_header, [tuple(line[:num_keys]) for line in lines]) == (header, rows)
        for row, line in zip(rows, lines, strict=True):
            for column, text in list(zip(header, line, strict=True))[num_keys:]:
                if (row, column) not in means:
                    assert text == ""
                    continue
                num_cells += 1
                assert len(text.partition(".")[2]) == decimals[column]
                assert abs(float(text) - means[row, column]) <= 0.5 * 10 ** -decimals[column] + 1e-6
    assert leaderboard.count("done") == leaderboard.num_cells == num_cells
    check_texts(leaderboard)
    check_summary(leaderboard, monkeypatch, capsys)


def check_texts(leaderboard):
    """Check the sentences beside the tables."""
    markdown = render_markdown(leaderboard)
    assert (
        f"{leaderboard.num_cells} cells: {leaderboard.num_cells} done, 0 partial, 0 failed, 0 not counted, 0 missing."
        in markdown
    )
    assert not any(f"\n## {title}" in markdown for title in ("Failed", "Waiting", "Mixed"))
    assert ("## Chosen by search" in markdown) == any(entry.alternatives for entry in leaderboard.profile.entries)
    assert leaderboard.headline is None or leaderboard.headline.status == "done"
    assert len(render_long_csv(leaderboard).splitlines()) == 1 + leaderboard.num_cells


def check_summary(leaderboard, monkeypatch, capsys):
    """No number is cut where the terminal has 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    print_summary(leaderboard, [], Path("board.md"))
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    pieces = set(out.split())
    for board in leaderboard.tables.values():
        shown = {
            (format_signed if cell.is_change else format_value)(cell.mean, board.paper.decimals(cell.column))
            for cell in board.cells.values()
        }
        assert all(any(piece.partition("/")[0] == number for piece in pieces) for number in shown)
