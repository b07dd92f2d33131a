"""CMHSA's suites: the paper's hyper-parameters, searches and phases, and what the two share."""

from collections import Counter
from typing import get_args

import pytest

from benchmarks import search
from leaderboards.boards.layout import check_layout, lay_out
from suite.papers import get_suite
from suite.papers.shared.deit_recipes import DEIT
from suite.spec.profile import ProfileName

CIFAR100, WARMUP = (get_suite(name) for name in ("cmhsa_cifar100", "cmhsa_warmup"))
PROFILES = [name for name in get_args(ProfileName) if name != "desktop"]  # those that every suite has
GRIDS = {"cmhsa_conv": {1e-4, 3e-4, 5e-4}, "cmhsa": {1e-5, 3e-5, 5e-5, 7e-5}}
NOT_DEITS = {"name", "epochs", "batch_size", "learning_rate", "mix_group"}


def candidates(name, suite=CIFAR100, profile="paper", table=""):
    (entry,) = (e for e in suite.profile(profile).entries if e.row[: len(name)] == name and e.table == table)
    return entry.candidates


@pytest.mark.parametrize("suite", [CIFAR100, WARMUP], ids=lambda suite: suite.name)
@pytest.mark.parametrize("name", PROFILES)
def test_rows_columns_and_figures_fit_the_tables(suite, name):
    check_layout(suite, suite.profile(name))
    table = suite.tables[0]
    rows = [entry.row for entry in suite.entries_of(suite.profile(name), table)]
    assert rows == list(lay_out(table, ()).rows)


def test_every_run_is_on_cifar100_at_224_with_batches_of_128_and_five_epochs_of_warm_up():
    for suite in (CIFAR100, WARMUP):
        for experiment in suite.profile("paper").experiments():
            recipe = experiment.recipe
            assert (experiment.dataset, experiment.image_size) == ("cifar100", 224)
            assert (recipe.optimizer, recipe.adam_epsilon, recipe.batch_size) == ("adamw", 1e-8, 128)
            assert recipe.schedule == "cosine"
            assert recipe.warmup_epochs == 5 or suite is WARMUP


@pytest.mark.parametrize(
    ("row", "model", "epochs"),
    [
        ("CMHSA-3 (1st phase)", "cmhsa_conv", 400),
        ("CMHSA-5 (1st phase)", "cmhsa_conv", 400),
        ("CMHSA (2nd phase)", "cmhsa", 400),
        ("CMHSA-3 (ours)", "cmhsa", 200),
        ("CMHSA-5 (ours)", "cmhsa", 200),
    ],
)
def test_each_phase_searches_the_papers_learning_rates_with_all_else_deits(row, model, epochs):
    found = candidates((row,))
    assert {e.recipe.learning_rate for e in found} == GRIDS[model]
    assert len(found) == len(GRIDS[model])
    for experiment in found:
        assert (experiment.model, experiment.recipe.epochs) == (model, epochs)
        assert experiment.recipe.model_dump(exclude=NOT_DEITS) == DEIT.model_dump(exclude=NOT_DEITS)


@pytest.mark.parametrize("kernel_size", [3, 5])
def test_every_second_phase_has_all_first_phases_for_parents(kernel_size):
    for second in candidates((f"CMHSA-{kernel_size} (ours)",)):
        assert second.kind == "transfer"
        assert {parent.recipe.learning_rate for parent in second.parents} == GRIDS["cmhsa_conv"]
        for parent in second.parents:
            assert (parent.model, parent.recipe.epochs) == ("cmhsa_conv", 200)
            assert parent.model_options == {"kernel_size": kernel_size}


def test_the_position_bias_starts_weak_enough_to_learn_and_only_where_there_is_a_transfer():
    assert {e.model_options["bias_strength"] for e in candidates(("CMHSA-5 (ours)",))} == {10.0}
    assert all(e.model_options == {} for e in candidates(("CMHSA (2nd phase)",)))


def test_vit_is_deit_base_without_deits_augmentation_and_regularization():
    (vit,), (deit,), (small,) = (candidates((name,)) for name in ("ViT-base", "DeiT-base", "DeiT-small"))
    assert (vit.model, deit.model, small.model) == ("deit_b", "deit_b", "deit_s")
    assert deit.recipe == small.recipe
    assert deit.recipe.model_dump(exclude=NOT_DEITS) == DEIT.model_dump(exclude=NOT_DEITS)
    assert {e.recipe.epochs for e in (vit, deit)} == {400}
    assert deit.recipe.learning_rate == pytest.approx(5e-4 * 128 / 512)
    off = vit.recipe
    assert (off.rand_augment, off.mixup, off.cutmix, off.random_erasing, off.color_jitter) == ("", 0, 0, 0, 0)
    assert (off.label_smoothing, off.drop_path, off.repeated_augmentation) == (0, 0, 1)
    assert (off.weight_decay, off.learning_rate) == (deit.recipe.weight_decay, deit.recipe.learning_rate)


@pytest.mark.parametrize("profile", ["gpu", "paper"])
def test_only_the_unit_of_training_time_and_its_like_are_without_a_search(profile):
    searched = {entry.row[0]: len(entry.candidates) for entry in CIFAR100.profile(profile).entries}
    assert {row for row, number in searched.items() if number == 1} == {"ViT-base", "DeiT-small", "DeiT-base"}
    (derived,) = CIFAR100.tables[0].derived
    assert (derived.metric, derived.baseline[0]) == ("lineage_train_s", "DeiT-base")


def test_the_search_tries_as_many_settings_of_each_row_on_held_out_images():
    assert {len(entry.candidates) for entry in CIFAR100.profile("laptop").entries} == {1}
    tried = Counter(entry.row[0] for entry in search.CMHSA.profile("laptop").entries)
    two_phases = ("CMHSA-3 (both phases)", "CMHSA-5 (both phases)")
    first = Counter(
        name
        for name in two_phases
        for parent in {
            parent.id
            for entry in search.CMHSA.profile("laptop").entries
            if entry.row == (name,)
            for parent in entry.experiment.parents
        }
    )
    rows = {name: number for name, number in (tried + first).items() if "warm-up" not in name}
    assert set(rows.values()) == {12}
    assert {e.evaluated_on for e in search.CMHSA.profile("laptop").experiments()} == {"held_out"}


@pytest.mark.parametrize("profile", ["laptop", "gpu", "paper"])
def test_warm_up_and_initialization_change_nothing_else(profile):
    runs = {row: candidates(row, WARMUP, profile, WARMUP.tables[1].name) for row in
            [(start, warmup) for start in ("convolutional", "random") for warmup in ("with", "without")]}  # fmt: skip
    rate = {"learning_rate": 1.0} if profile == "laptop" else {}  # where each has the best of a search
    recipes = {
        row: [e.recipe.model_copy(update={"warmup_epochs": 0, **rate}) for e in experiments]
        for row, experiments in runs.items()
    }
    assert all(recipe == recipes["random", "with"] for recipe in recipes.values())
    for (start, warmup), experiments in runs.items():
        assert {e.kind for e in experiments} == {"transfer" if start == "convolutional" else "training"}
        assert all((e.recipe.warmup_epochs > 0) == (warmup == "with") for e in experiments)
    assert len({e.id for experiments in runs.values() for e in experiments}) == 4 * len(runs["random", "with"])


@pytest.mark.parametrize("profile", ["laptop", "gpu", "paper"])
def test_the_warm_up_suite_trains_no_convolution_and_no_cmhsa_5_again(profile):
    warmup, table = ({e.id for e in suite.profile(profile).experiments()} for suite in (WARMUP, CIFAR100))
    shared = candidates(("CMHSA-5 (ours)",), profile=profile)
    assert candidates(("CMHSA-5 (ours)", "with"), WARMUP, profile) == shared
    assert warmup & table == {e.id for e in (*shared, *shared[0].parents)}
    assert len(warmup - table) == 3 * len(shared)


def test_gpu_is_the_papers_search_a_tenth_as_long():
    for gpu, paper in zip(*(CIFAR100.profile(name).experiments() for name in ("gpu", "paper")), strict=True):
        assert gpu.recipe.epochs == pytest.approx(paper.recipe.epochs / 10)
        assert gpu.recipe.warmup_epochs == pytest.approx(paper.recipe.warmup_epochs / 10)
        assert (gpu.model, gpu.model_options, gpu.image_size) == (paper.model, paper.model_options, 224)
