"""Cordonnier's suites: the paper's hyper-parameters, cells and parents, and what the two share."""

from typing import get_args

import pytest
import torch

from leaderboards.boards.layout import check_layout, lay_out
from suite.models.cordonnier.head_pruning import prune_heads
from suite.models.registry import build_model
from suite.papers import get_suite
from suite.papers.cordonnier.recipes import LAPTOP
from suite.papers.cordonnier.recipes import PAPER_SCALE as PAPER
from suite.spec.figures import CentersFigure, PathsFigure
from suite.spec.profile import ProfileName

CIFAR10, HEADS = (get_suite(name) for name in ("cordonnier_cifar10", "cordonnier_heads"))
PROFILES = [name for name in get_args(ProfileName) if name != "desktop"]  # those that every suite has


def paper_experiments(suite=CIFAR10):
    return {entry.row[0]: entry.experiment for entry in suite.profile("paper").entries if entry.experiment.is_trained}


@pytest.mark.parametrize("suite", [CIFAR10, HEADS], ids=lambda suite: suite.name)
@pytest.mark.parametrize("name", PROFILES)
def test_rows_columns_and_figures_fit_the_tables(suite, name):
    check_layout(suite, suite.profile(name))


@pytest.mark.parametrize("name", PROFILES)
def test_every_row_of_the_papers_table_is_filled_in_its_order(name):
    table = CIFAR10.table("cordonnier_table")
    rows = [entry.row for entry in CIFAR10.entries_of(CIFAR10.profile(name), table)]
    assert rows == list(lay_out(table, ()).rows)


def test_attention_networks_train_as_the_papers_hyper_parameters_say():
    for row in ("SA quadratic", "SA quadratic generalized", "SA learned"):
        experiment = paper_experiments()[row]
        recipe = experiment.recipe
        assert (experiment.dataset, experiment.image_size, experiment.model_options) == ("cifar10", 32, {})
        assert (recipe.optimizer, recipe.learning_rate, recipe.momentum, recipe.weight_decay) == ("sgd", 0.1, 0.9, 1e-4)
        assert (recipe.epochs, recipe.batch_size, recipe.warmup_epochs) == (300, 100, 15.03)
        assert (recipe.schedule, recipe.schedule_unit, recipe.min_learning_rate) == ("cosine", "epoch", 0)
        assert (recipe.crop, recipe.crop_padding, recipe.flip_probability) == ("pad", 4, 0.5)
        assert recipe.cosine_after_warmup
        assert recipe.decay_biases
        assert recipe.precision == "fp32"


def test_resnet_has_a_schedule_of_its_own_and_is_otherwise_trained_alike():
    resnet, attention = (paper_experiments()[row].recipe for row in ("ResNet18", "SA quadratic"))
    assert (resnet.schedule, resnet.milestones, resnet.warmup_epochs) == ("multistep", (80, 150, 250), 0)
    own = {"name", "schedule", "schedule_epochs", "milestones", "warmup_epochs", "cosine_after_warmup"}
    assert resnet.model_dump(exclude=own) == attention.model_dump(exclude=own)


def test_pruning_goes_on_from_the_generalized_network_by_the_papers_limits():
    pruned = paper_experiments()["SA quadratic generalized pruned"]
    assert pruned.kind == "pruning"
    assert pruned.parents == (paper_experiments()["SA quadratic generalized"],)
    assert pruned.kind_options == {"max_condition_number": 1e5, "min_eigenvalue": 1e-5}
    recipe = pruned.recipe
    assert (recipe.epochs, recipe.learning_rate, recipe.schedule, recipe.warmup_epochs) == (100, 0.01, "cosine", 5.01)


def test_pruned_heads_stand_beside_the_papers_layer_by_layer():
    table = CIFAR10.table("cordonnier_pruned_heads")
    (row, printed), *_ = lay_out(table, ()).rows.items()
    assert [printed[f"layer_{number}"] for number in range(1, 7)] == ["2", "4", "1", "2", "6", "0"]
    for name, depth in (("paper", 6), ("laptop", 3)):
        (entry,) = CIFAR10.entries_of(CIFAR10.profile(name), table)
        assert entry.row == row
        assert entry.experiment.kind == "pruning"
        assert entry.columns == {f"layer_{i}": f"num_pruned_heads_layer_{i}" for i in range(1, depth + 1)}


def test_the_accuracy_figure_goes_on_where_the_pruned_network_was_cut_from_its_parent():
    (figure,) = CIFAR10.figures
    assert figure.after_parents
    profile = CIFAR10.profile("paper")
    before = {
        label: CIFAR10.find_entry(profile, place).experiment.epochs_before
        for label, place in figure.panels["CIFAR-10"].items()
    }
    assert before.pop("SA quadratic generalized, pruned") == 300
    assert len(before) == 5
    assert set(before.values()) == {0}


def test_the_gpu_profile_is_the_papers_own_protocol():
    for suite in (CIFAR10, HEADS):
        gpu, paper = ([e.id for e in suite.profile(name).experiments(range(2))] for name in ("gpu", "paper"))
        assert gpu == paper


@pytest.mark.parametrize("name", PROFILES)
def test_the_heads_that_are_drawn_are_those_of_the_table_and_trained_once(name):
    table, drawn = (
        {e.id for e in suite.profile(name).experiments() if e.kind == "training"} for suite in (CIFAR10, HEADS)
    )
    assert len(drawn) == 5
    assert len(drawn & table) == 4  # all but the sixteen heads


def test_every_figure_of_heads_draws_the_maps_of_a_network_with_its_encoding():
    profile = HEADS.profile("paper")
    for figure in HEADS.figures:
        for place in figure.models.values():
            shown = HEADS.find_entry(profile, place).experiment
            assert shown.kind == ("training" if isinstance(figure, PathsFigure) else "maps")
            assert all(parent.kind == "training" for parent in shown.parents)
            assert isinstance(figure, CentersFigure | PathsFigure) == ("quadratic" in shown.model)
    sixteen = HEADS.find_entry(profile, HEADS.headline.better).experiment
    assert (sixteen.model, sixteen.model_options) == ("sa_quadratic", {"num_heads": 16})


def test_the_laptop_keeps_the_proportions_of_every_length():
    for model in (LAPTOP.resnet(), LAPTOP.network("sa_learned"), LAPTOP.pruned()):
        (full,) = (e for e in (PAPER.resnet(), PAPER.network("sa_learned"), PAPER.pruned()) if e.model == model.model)
        for length in ("epochs", "warmup_epochs", "schedule_epochs"):
            assert getattr(full.recipe, length) == pytest.approx(getattr(model.recipe, length) * LAPTOP.shrinkage)
        assert [m * LAPTOP.shrinkage for m in model.recipe.milestones] == pytest.approx(list(full.recipe.milestones))
        assert model.recipe.learning_rate == full.recipe.learning_rate


def test_the_laptops_limits_prune_some_heads_of_a_fresh_network_and_not_all():
    torch.manual_seed(0)
    experiment = LAPTOP.network("sa_quadratic_generalized")
    model = build_model(experiment.model, num_classes=10, image_size=32, **experiment.model_options)
    heads = [int(number) for number in prune_heads(model, **LAPTOP.pruning).heads_per_layer.split(",")]
    assert 0 < sum(heads) < 27
