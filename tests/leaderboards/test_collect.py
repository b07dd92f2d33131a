import shutil
from pathlib import Path

import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.collect import collect
from leaderboards.boards.metrics import check_metric, is_accuracy, read_metric
from suite.base.errors import RecordError, SpecError
from suite.spec.experiment import Experiment
from suite.store.results import Failure


def configuration_id(table2, row=("5",)):
    return next(e.experiment.configuration_id for e in table2.profiles["laptop"].entries if e.row == row)


def collect_first(table2, store, seeds=None):
    return collect(table2.profiles["laptop"], store, seeds).runs[configuration_id(table2)]


def test_the_fullest_cell_sets_the_planned_number_of_seeds(table2, finish, tmp_path):
    finish("deit", "5", 0, 40.0)
    for seed in range(3):
        finish("convit", "100", seed, 40.0)
    assert len(collect(table2.profiles["laptop"], tmp_path).seeds) == 3
    assert len(collect(table2.profiles["laptop"], tmp_path, seeds=range(5)).seeds) == 5


def test_seeds_that_do_not_begin_at_0_are_planned_as_they_are(table2, finish, tmp_path):
    for seed in (8, 9, 10):
        finish("deit", "5", seed, 40.0)
    finish("convit", "5", 8, 40.0)
    assert list(collect(table2.profiles["laptop"], tmp_path).seeds) == [8, 9, 10]
    assert set(collect_first(table2, tmp_path).statuses) == {8, 9, 10}
    assert set(collect_first(table2, tmp_path, range(8, 12)).statuses) == {8, 9, 10, 11}


def test_an_empty_store_plans_one_seed_and_finds_nothing(table2, tmp_path):
    collection = collect(table2.profiles["laptop"], tmp_path)
    assert len(collection.seeds) == 1
    assert all(not cell.values and not cell.failures for cell in collection.runs.values())


def test_seeds_beyond_the_planned_ones_are_read_too(table2, finish, tmp_path):
    finish("deit", "5", 0, 40.0)
    finish("deit", "5", 41, 42.0)
    values = collect_first(table2, tmp_path, seeds=range(1)).values
    assert {seed: metrics["top1_percent"] for seed, metrics in values.items()} == {0: 40.0, 41: 42.0}


@pytest.mark.parametrize("content", ["", '{"experiment"', "{}", "null"])
def test_a_corrupt_result_is_a_failure_of_its_seed_alone(table2, finish, tmp_path, content):
    finish("deit", "5", 0, 40.0)
    run = finish("deit", "5", 1, 41.0)
    run.result_path.write_text(content)
    cell = collect_first(table2, tmp_path)
    assert list(cell.values) == [0]
    (failure,) = cell.failures
    assert failure.seed == 1
    assert failure.log_path == str(run.result_path)
    assert "--retry-failed" in failure.reason


def test_a_result_that_cannot_be_opened_is_a_failure(table2, finish, tmp_path):
    run = finish("deit", "5", 0, 40.0)
    run.result_path.unlink()
    run.result_path.mkdir()
    assert len(collect_first(table2, tmp_path).failures) == 1


@pytest.mark.parametrize("content", ["not json", '{"kind": "lost"}'])
def test_a_corrupt_failure_record_is_a_failure(table2, finish, tmp_path, content):
    run = finish("deit", "5", 0, 40.0)
    run.result_path.unlink()
    run.failure_path.write_text(content)
    (failure,) = collect_first(table2, tmp_path).failures
    assert failure.log_path == str(run.failure_path)


def test_a_result_copied_from_another_cell_is_refused(table2, finish, tmp_path):
    other = finish("deit", "10", 0, 60.0)
    run = finish("deit", "5", 0, 40.0)
    run.result_path.write_bytes(other.result_path.read_bytes())
    cell = collect_first(table2, tmp_path)
    assert not cell.values
    assert configuration_id(table2, ("10",)) in cell.failures[0].reason


def test_a_recipe_of_another_name_is_the_same_experiment(table2, finish, tmp_path):
    run = finish("deit", "5", 0, 40.0)
    result = run.read_result()
    assert result.experiment.recipe.name == "short"
    recipe = result.experiment.recipe.model_copy(update={"name": "renamed"})
    experiment = result.experiment.model_copy(update={"recipe": recipe})
    run.write_result(result.model_copy(update={"experiment": experiment}))
    assert not collect_first(table2, tmp_path).failures


def test_a_run_that_failed_shows_its_reason_and_one_that_was_killed_is_waited_for(table2, finish, tmp_path):
    for seed, kind in enumerate(("error", "killed")):
        run = finish("deit", "5", seed, 40.0)
        run.result_path.unlink()
        run.write_failure(Failure(kind=kind, reason="the loss is nan", log_path="logs/x.txt"))
    cell = collect_first(table2, tmp_path)
    assert [(f.seed, f.reason, f.log_path) for f in cell.failures] == [(0, "the loss is nan", "logs/x.txt")]
    assert cell.waiting == ("the loss is nan",)


def test_an_experiment_that_stands_in_two_entries_is_read_once(table2, finish, tmp_path, monkeypatch):
    finish("deit", "5", 0, 40.0)
    profile = table2.profiles["laptop"]
    doubled = profile.model_copy(update={"entries": profile.entries + profile.entries})
    read = []

    def count(store: Path, experiment: Experiment):
        read.append(experiment.configuration_id)
        return {}

    monkeypatch.setattr("leaderboards.boards.collect.find_runs", count)
    collect(doubled, tmp_path)
    assert len(read) == len(set(read)) == 10


def test_a_file_in_place_of_a_seeds_folder_is_a_failure_of_that_seed(table2, fill, finish, tmp_path):
    fill(2)
    run = finish("deit", "5", 1, 40.0)
    shutil.rmtree(run.path)
    run.path.write_text("")
    cell = make_leaderboard(table2, "laptop", tmp_path).board().cells[("5",), "deit_top1"]
    assert (cell.status, cell.coverage.num_done) == ("failed", 1)


def test_a_file_in_place_of_a_cells_folder_is_refused_by_name(table2, fill, finish, tmp_path):
    fill(1)
    folder = finish("deit", "5", 0, 40.0).path.parent
    shutil.rmtree(folder)
    folder.write_text("")
    with pytest.raises(RecordError, match=f"cannot list .*{folder.name}: Not a directory"):
        make_leaderboard(table2, "laptop", tmp_path)


# -- metrics


def test_a_metric_can_be_shown_in_the_papers_unit(finish):
    result = finish("deit", "5", 0, 93.8).read_result()
    assert read_metric(result, "top1_percent") == 93.8
    assert read_metric(result, "top1_fraction") == pytest.approx(0.938)
    assert read_metric(result, "num_parameters_millions") == pytest.approx(5.7)


def test_text_is_no_metric():
    with pytest.raises(SpecError, match="unknown metric 'device'"):
        check_metric("device")


def test_flops_are_counted_as_the_papers_do(finish):
    result = finish("deit", "5", 0, 93.8).read_result().model_copy(update={"num_linear_macs": 3_088_000_000})
    assert read_metric(result, "linear_gmacs") == pytest.approx(3.088)
    assert read_metric(result, "linear_gflops") == pytest.approx(6.176)


def test_pruned_heads_are_a_metric_for_each_layer(finish):
    result = finish("deit", "5", 0, 93.8).read_result().model_copy(update={"num_pruned_heads": (2, 0)})
    assert [read_metric(result, f"num_pruned_heads_layer_{number}") for number in (1, 2, 3)] == [2, 0, None]
    check_metric("num_pruned_heads_layer_6")
    with pytest.raises(SpecError, match="Did you mean 'num_pruned_heads_layer"):
        check_metric("num_pruned_heads_layer_0")


def test_a_metric_that_a_run_does_not_have_has_no_value(finish):
    assert read_metric(finish("deit", "5", 0, 93.8).read_result(), "mean_gate") is None


def test_only_what_is_better_when_higher_is_an_accuracy():
    assert is_accuracy("top1_fraction")
    assert not any(map(is_accuracy, ("test_loss", "train_s", "images_per_s", "num_parameters", "")))
