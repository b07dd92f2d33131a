"""The suites of "Structured Initialization": their cells, the paper's protocol to the letter, and what they share."""

import numpy as np
import pytest
import torch

from leaderboards.boards.layout import check_layout, load_paper_table
from suite.papers import get_suite
from suite.papers.structured_init import recipes as protocol
from suite.spec.recipe import Recipe
from suite.spec.suite import RankedWithin
from suite.training.learning_rate import LearningRate

# distinct trainings in laptop, gpu, paper
TRAININGS = {
    "init_position": (4, 4, 4),
    "init_datasets": (5, 15, 20),
    "init_heads": (10, 20, 20),
    "convmixer_filters": (24, 24, 24),
    "init_width_heads": (10, 80, 80),
    "init_pseudo_input": (9, 72, 72),
    "init_attention_maps": (3, 3, 3),
}
PROFILES = ("laptop", "gpu", "paper")


def trainings(suite, profile):
    return [e for e in get_suite(suite).profile(profile).experiments() if e.kind == "training"]


def experiment_at(suite, profile, row, column):
    [found] = [e.experiment for e in get_suite(suite).profile(profile).entries if e.row == row and column in e.columns]
    return found


@pytest.mark.parametrize("name", TRAININGS)
def test_each_profile_fills_its_cells_of_the_papers_table_once(name):
    suite = get_suite(name)
    assert tuple(len(trainings(name, profile)) for profile in PROFILES) == TRAININGS[name]
    for profile in PROFILES:
        check_layout(suite, suite.profile(profile))


@pytest.mark.parametrize("name", [name for name in TRAININGS if name != "init_attention_maps"])
def test_the_paper_profile_leaves_no_number_of_the_paper_without_a_run(name):
    suite = get_suite(name)
    table = suite.table()
    printed = load_paper_table(table.name, table.row_keys)
    filled = {(e.row, column) for e in suite.profile("paper").entries for column in e.columns}
    derived = {gain.column for gain in table.derived}
    columns = set(printed.header[len(table.row_keys) :]) - derived
    assert filled == {(row, column) for row in printed.rows for column in columns}


@pytest.mark.parametrize("name", ["init_datasets", "init_heads"])
def test_the_printed_changes_are_the_printed_accuracies_minus_trunc_normals(name):
    table = get_suite(name).table()
    printed = load_paper_table(table.name, table.row_keys)
    assert [change.column for change in table.derived] == [f"{change.of}_change" for change in table.derived]
    for change in table.derived:
        baseline = printed.value(change.baseline, change.of)
        assert change.baseline == ("Trunc Normal",)
        for row in printed.rows:
            expected = None if row == change.baseline else pytest.approx(printed.value(row, change.of) - baseline)
            assert printed.value(row, change.column) == expected


def test_ranks_are_given_where_the_paper_marks_a_best_one():
    assert get_suite("init_position").table().ranked == "in_table"
    assert get_suite("init_width_heads").table().ranked == RankedWithin(row_keys=("embed_dim",))


def test_the_maps_before_training_have_a_corner_and_those_of_before_and_after_have_none():
    before, both = get_suite("init_attention_maps").figures
    assert (before.what, before.before, before.after, len(before.models)) == ("corner", True, False, 3)
    assert (both.what, both.before, both.after) == ("between", True, True)
    assert "Mimetic" not in both.models


@pytest.mark.parametrize("name", TRAININGS)
def test_the_headlines_two_places_are_filled_at_every_scale(name):
    suite = get_suite(name)
    for profile in suite.profiles.values():
        assert suite.find_entry(profile, suite.headline.better) is not None
        assert suite.find_entry(profile, suite.headline.baseline) is not None


def test_cifar_is_trained_by_section_5_1_and_the_authors_command():
    expected = Recipe(
        name="written out",
        epochs=200,
        batch_size=512,
        learning_rate=1e-3,
        optimizer="adamw",
        adam_epsilon=1e-3,
        weight_decay=0.01,
        clip_grad_norm=3.0,
        schedule="cosine",
        schedule_unit="epoch",
        warmup_epochs=10,
        warmup_learning_rate=1e-5,
        min_learning_rate=1e-6,
        label_smoothing=0.1,
        flip_probability=0.5,
        rand_augment="rand-m9-mstd0.5-inc1",
        precision="bf16",
        crop="none",
        test_crop=1.0,
        random_erasing=0.0,
        mixup=0.0,
        cutmix=0.0,
    )
    small = [e for name in TRAININGS for e in trainings(name, "gpu") if e.model != "convmixer"]
    assert {e.recipe.model_copy(update={"name": "written out"}) for e in small} == {expected}
    assert {e.image_size for e in small} == {32}
    assert {e.dataset for e in small} == {"cifar10", "cifar100", "svhn"}


def test_convmixers_differ_from_it_in_learning_rate_and_epochs_only():
    recipes = {e.recipe for e in trainings("convmixer_filters", "paper")}
    [recipe] = recipes
    changed = {name for name in Recipe.model_fields if getattr(recipe, name) != getattr(protocol.CIFAR, name)}
    assert (recipe.learning_rate, recipe.epochs) == (0.01, 100)
    assert changed == {"name", "learning_rate", "epochs"}


def test_imagenet_is_trained_as_convmixer_was_and_only_in_the_paper_profile():
    large = [e for e in trainings("init_datasets", "paper") if e.dataset == "imagenet"]
    assert len(large) == 5
    assert {(e.image_size, e.model, e.model_options["patch_size"]) for e in large} == {(224, "vit_t", 16)}
    [recipe] = {e.recipe for e in large}
    assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (300, 640, 0.01)
    assert (recipe.mixup, recipe.cutmix, recipe.random_erasing, recipe.clip_grad_norm) == (0.5, 0.5, 0.25, 1.0)
    assert (recipe.schedule, recipe.warmup_epochs, recipe.crop) == ("one_cycle", 0, "random_resized")
    assert all(e.dataset != "imagenet" for name in TRAININGS for e in trainings(name, "gpu"))


def test_the_authors_other_imagenet_command_is_another_experiment():
    as_the_code = protocol.imagenet_vit("Mimetic", protocol.IMAGENET_AS_THE_CODE)
    recipe = as_the_code.recipe
    assert (recipe.batch_size, recipe.learning_rate, recipe.schedule, recipe.warmup_epochs) == (
        4096,
        4e-3,
        "cosine",
        50,
    )
    assert as_the_code.configuration_id != protocol.imagenet_vit("Mimetic").configuration_id


def test_the_one_cycle_learning_rate_is_convmixers():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=protocol.IMAGENET.learning_rate)
    learning_rate = LearningRate(optimizer, protocol.IMAGENET, num_steps=3000)
    for step in (0, 1, 600, 1200, 1800, 2400, 2700, 2999):
        expected = np.interp((step + 1) / 10, [0, 120, 240, 300], [0, 0.01, 0.01 / 20, 0])
        assert learning_rate.set(step) == pytest.approx(expected)


def test_the_gpu_profile_is_the_papers_without_imagenet_and_says_of_no_other_scale():
    for name in TRAININGS:
        assert get_suite(name).profile("gpu").scale_note == ""
        paper = [e.id for e in trainings(name, "paper") if e.dataset != "imagenet"]
        assert sorted(e.id for e in trainings(name, "gpu")) == sorted(paper)


def test_options_that_equal_the_models_defaults_are_left_out():
    full = protocol.vit("Trunc Normal", num_heads=3, position="sinusoidal", pseudo_input_first="PE", depth=12)
    assert full.model_options == {}
    assert protocol.convmixer(5, 256, "trained").model_options == {}
    assert protocol.vit("Mimetic", model="vit_s", num_heads=6).model_options == {"initialization": "mimetic"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_configuration_of_several_tables_is_one_experiment(profile):
    table2 = {method: experiment_at("init_datasets", profile, (method,), "cifar10") for method in protocol.METHODS}
    position = experiment_at("init_position", profile, ("Sinusoidal PE",), "average_pooling")
    pseudo_input = experiment_at("init_pseudo_input", profile, ("PE", "PE"), "same_h3_imp3")
    assert position.id == table2["Trunc Normal"].id
    assert pseudo_input.id == table2["Imp.-3"].id
    for entry in get_suite("init_attention_maps").profile(profile).entries:
        assert entry.experiment.kind == "maps"
        assert [parent.id for parent in entry.experiment.parents] == [table2[entry.row[0]].id]


@pytest.mark.parametrize(("profile", "column"), [("laptop", "cifar10"), ("gpu", "cifar100"), ("paper", "cifar100")])
def test_three_heads_of_table_3_are_a_column_of_table_2(profile, column):
    for method in protocol.METHODS:
        three = experiment_at("init_heads", profile, (method,), "vit_t_h3")
        assert three.id == experiment_at("init_datasets", profile, (method,), column).id


def test_pseudo_input_columns_vary_heads_window_and_layers():
    options = experiment_at("init_pseudo_input", "paper", ("U", "PE+U"), "different_h8_imp5").model_options
    assert options == {
        "initialization": "impulse_5",
        "num_heads": 8,
        "pseudo_input_first": "U",
        "pseudo_input_following": "PE+U",
        "same_for_all_layers": False,
    }
    [average] = get_suite("init_pseudo_input").table().derived
    assert (average.column, len(average.columns)) == ("average", 8)


def test_tables_5_and_7_are_vits_of_depth_8_at_the_width_and_heads_of_their_place():
    options = experiment_at("init_width_heads", "paper", ("7", "Imp.-5", "64"), "h32").model_options
    assert options == {"initialization": "impulse_5", "dim": 64, "depth": 8, "num_heads": 32}


def test_impulses_are_solved_by_algorithm_1_in_all_its_steps_at_every_scale():
    for name in TRAININGS:
        for profile in PROFILES:
            for experiment in trainings(name, profile):
                assert not {"impulse_steps", "renormalize", "mimetic_port"} & set(experiment.model_options)
