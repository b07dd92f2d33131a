"""Equal tuning: the same tries for every model of a row, on held-out images, and a board of what they chose."""

import numpy as np
import pytest

from imagesets.fractions import fraction_indices, hold_out
from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest, untuned
from launchers.command.tune import Tries, describe_tuning, draw_settings
from leaderboards.boards.board import make_leaderboard
from leaderboards.packed_records import pack_records
from leaderboards.text.notes import find_notes
from suite.base.errors import SpecError
from suite.papers import get_suite, list_suites
from suite.spec.profile import SAMPLE_TRAIN_IMAGES
from suite.spec.tuning import Try, tunable
from suite.store.attempts import record_start
from suite.store.custom_models import record_custom_models
from suite.store.run_directory import RunDirectory
from suite.store.tuning import add_tuning, read_tuning

WORDS = ("--suite", "sample_efficiency", "--challenger", "mine=deit_micro", "depth=2", "--only", "train_size_percent=5")
NAME = "laptop+tune3"
SAMPLE_LABELS = np.repeat(np.arange(10), SAMPLE_TRAIN_IMAGES // 10)


@pytest.fixture
def tries(tmp_path):
    pytest.importorskip("optuna")
    found = Tries.before(request_of(tmp_path))
    assert found is not None
    return found


def request_of(tmp_path, *more):
    return GridRequest.of(parse_options([*WORDS, "--tune", "3", "--runs", str(tmp_path), *more]))


def test_settings_are_drawn_once_and_the_first_is_the_suite_s_own():
    pytest.importorskip("optuna")
    first, *others = draw_settings(9)
    assert first == Try()
    assert draw_settings(9)[:5] == draw_settings(5)
    assert all(0.25 <= one.rate <= 4 and 0 <= one.warmup <= 0.2 and 0.1 <= one.decay <= 10 for one in others)
    assert len(set(others)) == 8


def test_all_models_of_a_row_try_the_same_settings_on_held_out_images_by_a_seed_of_their_own(tries):
    recipes = {tuple(repr(one.recipe) for one in of) for of in tries.of.values()}
    assert {one.model for one in tries.grid.experiments} == {"deit_micro", "convit_micro"}
    assert len(tries.grid.experiments) == 9
    assert len(recipes) == 1
    assert {(one.evaluated_on, one.seed) for one in tries.grid.experiments} == {("held_out", 1000)}


def test_a_row_is_selected_by_the_name_that_its_recipe_had_before_it_was_tuned(tries, finish_in, tmp_path):
    for of in tries.of.values():
        for top1, one in zip((40.0, 45.0, 30.0), of, strict=True):
            finish_in(tmp_path, one, top1)
    assert tries.record()
    experiments = request_of(tmp_path).experiments
    recipe, *_ = experiments[0].recipe.name.split(", tuned")
    assert request_of(tmp_path, "--only", f"recipe={recipe}").experiments == experiments


@pytest.mark.parametrize("name", list_suites())
def test_tries_of_the_smoke_scale_have_an_image_of_each_class(name):
    train, _ = hold_out(SAMPLE_LABELS, 10)
    for one in tunable(get_suite(name).profile("smoke").experiments()):
        assert len(fraction_indices(SAMPLE_LABELS[train], one.train_fraction, 10)) >= 10


def test_the_board_shows_the_best_tries_their_number_and_their_cost(tries, finish_in, tmp_path):
    assert not tries.record()
    for of in tries.of.values():
        for top1, one in zip((40.0, 45.0), of, strict=False):
            record_start(finish_in(tmp_path, one, top1), 1)
        RunDirectory.of(tmp_path, of[2]).create(of[2])
    assert not tries.record()  # the third may still come
    again = request_of(tmp_path)
    assert not any("tuned" in one.recipe.name for one in again.experiments)
    assert len(Tries.before(again).grid.experiments) == 9
    for of in tries.of.values():
        RunDirectory.of(tmp_path, of[2]).record_failure("error", "the loss is nan")
    assert tries.record()
    grid = request_of(tmp_path)
    assert Tries.before(grid) is None
    second = read_tuning(tmp_path, "sample_efficiency", NAME).settings[1]
    before = {one.model: one for one in untuned(grid.suite, grid.options)}
    assert all(one.recipe == second.apply(before[one.model]).recipe for one in grid.experiments)
    assert {(one.evaluated_on, one.seed) for one in grid.experiments} == {("test", 0)}
    for one in grid.experiments:
        finish_in(tmp_path, one, 50.0)
    record_custom_models(tmp_path, grid.custom_models)
    leaderboard = make_leaderboard(get_suite("sample_efficiency"), NAME, tmp_path)
    assert leaderboard.board().cells[("5",), "mine_top1"].mean == 50.0
    assert leaderboard.board().cells[("5",), "convit_top1"].mean == 50.0
    told = [note.text for note in find_notes(leaderboard)["Settings tried"]]
    assert told[0].startswith("3 on held-out training images")
    assert told[1].startswith("all tries together took")
    assert "tuned, learning_rate" in told[2]
    assert pack_records(leaderboard).num_runs == 3
    assert make_leaderboard(get_suite("sample_efficiency"), "laptop", tmp_path).profile.tuning_hours == 0


def test_a_try_that_failed_counts_nothing_until_it_is_retried(tries, finish_in, tmp_path):
    for of in tries.of.values():
        for one in of[:2]:
            finish_in(tmp_path, one, 40.0)
        run = RunDirectory.of(tmp_path, of[2])
        run.create(of[2])
        run.record_failure("error", "no space left on the disk")
    assert tries.record()
    assert Tries.before(request_of(tmp_path)) is None
    again = Tries.before(request_of(tmp_path, "--retry-failed"))
    assert again.of == tries.of
    for of in again.of.values():
        RunDirectory.of(tmp_path, of[2]).failure_path.unlink()
        finish_in(tmp_path, of[2], 45.0)
    assert again.record()
    assert set(read_tuning(tmp_path, "sample_efficiency", NAME).top1_percent.values()) == {(40.0, 40.0, 45.0)}
    assert Tries.before(request_of(tmp_path, "--retry-failed")) is None


def test_grids_that_tune_other_models_at_once_keep_each_others_tries(finish_in, tmp_path):
    pytest.importorskip("optuna")
    grids = [Tries.before(request_of(tmp_path, "--only", f"model={one}")) for one in ("deit_micro", "convit_micro")]
    for grid in grids:
        for tries in grid.of.values():
            for one in tries:
                finish_in(tmp_path, one, 40.0)
    assert all(grid.record() for grid in grids)
    known = read_tuning(tmp_path, "sample_efficiency", NAME).top1_percent
    assert known.keys() == grids[0].of.keys() | grids[1].of.keys()
    assert len(known) == 3


def test_a_board_of_recipes_that_were_never_tuned_here_is_refused(tmp_path):
    (tmp_path / "experiments").mkdir()
    with pytest.raises(SpecError, match=r"laptop\+tune3 was not tuned in this store"):
        make_leaderboard(get_suite("sample_efficiency"), NAME, tmp_path)


def test_what_starts_from_other_runs_starts_from_the_tuned_ones_and_is_named(tmp_path):
    pytest.importorskip("optuna")
    grid = GridRequest.of(parse_options(["--suite", "convit_masking", "--tune", "2", "--runs", str(tmp_path)]))
    names = describe_tuning(grid).partition("Not tuned by themselves, as they start from tuned runs: ")[2].split(", ")
    assert len(names) == len({one.configuration_id for one in grid.experiments if one.kind == "masking"})
    assert all(" masking " in name for name in names)
    tuned = [one.configuration_id for one in untuned(grid.suite, grid.options)]
    known = {"top1_percent": dict.fromkeys(tuned, (40.0, 45.0)), "hours": dict.fromkeys(tuned, 0.1)}
    tuning = Tries.before(grid).known.model_copy(update=known)
    add_tuning(tmp_path, "convit_masking", grid.profile_name, tuning)
    experiments = GridRequest.of(grid.options).experiments
    assert len(experiments) == len(grid.experiments)
    assert all("tuned" in one.recipe.name for one in experiments)
    (tmp_path / "experiments").mkdir()
    leaderboard = make_leaderboard(grid.suite, grid.profile_name, tmp_path)
    assert leaderboard.num_cells == len(grid.profile.entries)
    told = [note.text for note in find_notes(leaderboard)["Settings tried"]]
    assert any("is not tuned by itself, and starts from runs trained by deit_scarce, tuned" in text for text in told)
