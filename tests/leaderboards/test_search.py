import pytest

from leaderboards.build import make_boards
from leaderboards.render import render_markdown
from leaderboards.sheets import render_long_csv
from suite.profiles import Entry
from suite.spec import Experiment, Recipe

RECIPE = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)


def candidate(**recipe):
    return Experiment(model="deit_ti", dataset="cifar10", image_size=32, recipe=RECIPE.model_copy(update=recipe))


SLOW, FAST, FASTER = (candidate(learning_rate=rate) for rate in (3e-5, 3e-4, 3e-3))


@pytest.fixture
def searched(own_suite):
    entry = Entry(
        row=("deit",), columns={"a": "top1_percent", "b": "test_loss"}, experiment=SLOW, alternatives=(FAST, FASTER)
    )
    return own_suite(entry)


def cell_of(suite, store, column="a", num_seeds=None):
    return make_boards(suite, "laptop", store, num_seeds).board().cells[("deit",), column]


def test_the_candidate_with_the_best_mean_is_shown_not_the_one_with_the_best_seed(
    searched, finish_experiment, tmp_path
):
    for experiment, values in ((SLOW, (60, 60)), (FAST, (70, 72)), (FASTER, (90, 50))):
        for seed, value in enumerate(values):
            finish_experiment(experiment.with_seed(seed), value, test_loss=value / 100)
    cell = cell_of(searched, tmp_path)
    assert (cell.mean, cell.status, cell.num_done, cell.num_planned) == (71, "done", 2, 2)
    assert cell.experiment == FAST
    assert cell_of(searched, tmp_path, "b").mean == pytest.approx(0.71)  # of the same runs


def test_the_choice_is_told_with_what_distinguishes_it(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value)
    boards = make_boards(searched, "laptop", tmp_path)
    said = "- deit, a, b: learning_rate=3e-05, chosen among 3 candidates by test accuracy"
    assert said in render_markdown(boards).splitlines()
    assert f",deit_ti-{SLOW.cell_id}," in render_long_csv(boards)


def test_a_search_is_partial_until_every_candidate_has_its_seeds(searched, finish_experiment, tmp_path):
    finish_experiment(SLOW, 80)
    finish_experiment(FAST, 70)
    cell = cell_of(searched, tmp_path)
    assert (cell.mean, cell.status) == (80, "partial")
    markdown = render_markdown(make_boards(searched, "laptop", tmp_path))
    assert "80.00 **partial 2/3**" in markdown
    assert "among the 2 of 3 candidates that have a result" in markdown
    finish_experiment(FASTER, 60)
    assert cell_of(searched, tmp_path).status == "done"
    assert cell_of(searched, tmp_path, num_seeds=2).status == "partial"


def test_a_candidate_that_diverged_leaves_the_shown_number_usable_but_is_told(searched, finish_experiment, tmp_path):
    finish_experiment(SLOW, 80)
    finish_experiment(FAST, 70)
    finish_experiment(FASTER, 60).result_path.write_text("{")
    cell = cell_of(searched, tmp_path)
    assert (cell.mean, cell.status, len(cell.failures)) == (80, "partial", 1)


def test_the_shown_candidates_failed_seed_fails_the_cell(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value)
    finish_experiment(SLOW.with_seed(1), 80).result_path.write_text("{")
    assert cell_of(searched, tmp_path).status == "failed"


def test_without_any_result_nothing_is_chosen(searched, tmp_path):
    cell = cell_of(searched, tmp_path)
    assert (cell.status, cell.mean) == ("missing", None)
    assert "Chosen" not in render_markdown(make_boards(searched, "laptop", tmp_path))


def test_candidates_that_differ_by_model_options_say_so(own_suite, finish_experiment, tmp_path):
    options = [SLOW.model_copy(update={"model_options": {"patch_size": size}}) for size in (2, 4)]
    suite = own_suite(
        Entry(row=("deit",), columns={"a": "top1_percent"}, experiment=options[0], alternatives=(options[1],))
    )
    finish_experiment(options[1], 50)
    assert cell_of(suite, tmp_path).search.chosen == "patch_size=4"


def test_the_cost_of_a_search_is_that_of_all_its_runs(searched, finish_experiment, tmp_path):
    for experiment, value in ((SLOW, 80), (FAST, 70), (FASTER, 60)):
        finish_experiment(experiment, value, device_hours=2.0)
    assert cell_of(searched, tmp_path).device_hours == 6
