"""The optimizer's groups and the learning rate against the authors' rules and published lists."""

import math
from decimal import Decimal

import pytest
import torch
from timm.scheduler import CosineLRScheduler

from suite.models.registry import build_model
from suite.papers.cmhsa.recipes import CMHSA
from suite.papers.cordonnier.recipes import ATTENTION, FINE_TUNING
from suite.papers.shared.deit_recipes import DEIT
from suite.papers.structured_init.recipes import CIFAR
from suite.spec.recipe import Recipe
from suite.training.learning_rate import LearningRate
from suite.training.optim import build_optimizer


def test_weight_decay_spares_biases_gates_norms_positions_and_class_token():
    model = build_model("convit_micro", num_classes=10, image_size=32)
    optimizer = build_optimizer(model, DEIT)
    free = {id(p) for group in optimizer.param_groups if group["weight_decay"] == 0 for p in group["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in free}
    assert {"pos_embed", "cls_token", "blocks.0.attn.gating_param", "norm.weight", "head.bias"} <= names
    assert {n for n in names if n.endswith("weight") and "norm" not in n} == set()


def test_weight_decay_reaches_the_position_biases_of_cmhsa_as_by_deits_rule():
    model = build_model("cmhsa_micro", num_classes=10, image_size=32)
    optimizer = build_optimizer(model, CMHSA)
    free = {id(p) for group in optimizer.param_groups if group["weight_decay"] == 0 for p in group["params"]}
    assert {name for name, p in model.named_parameters() if id(p) in free} == {
        name for name, p in model.named_parameters() if p.ndim <= 1
    }
    assert model.blocks[0].attn.position_bias.ndim == 3


RATES = {
    "deit": (DEIT, {0: "1.000e-6", 1: "1.000e-6", 2: "2.008e-4", 6: "9.993e-4", 299: "1.011e-5"}),
    "cmhsa": (CMHSA, {0: "1.000e-6", 1: "1.000e-6", 5: "2.402e-4", 6: "2.996e-4", 199: "1.007e-5"}),
    "structured_init": (CIFAR, {0: "1.00e-5", 9: "9.01e-4", 10: "9.94e-4", 199: "1.06e-6"}),
    "cordonnier": (ATTENTION, {0: "0.00e-5", 1: "6.65e-3", 15: "9.98e-2", 150: "5.43e-2", 299: "8e-6"}),
    "cordonnier_fine_tuning": (FINE_TUNING, {0: "0.00e-6", 1: "2.00e-3", 5: "9.98e-3", 50: "5.43e-3", 99: "3.9e-6"}),
}
"""What the authors' code runs each epoch at: the paper's recipe, epoch -> learning rate, rounded."""


@pytest.mark.parametrize("name", RATES)
def test_the_learning_rate_of_an_epoch_is_the_authors_and_constant_within_it(name):
    recipe, expected = RATES[name]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=recipe.learning_rate)
    learning_rate = LearningRate(optimizer, recipe, num_steps=int(recipe.epochs) * 10)
    for epoch, rounded in expected.items():
        last_digit = 10.0 ** Decimal(rounded).as_tuple().exponent
        found = [learning_rate.set(epoch * 10 + k) for k in (0, 9)]
        assert found == pytest.approx([float(rounded)] * 2, rel=0, abs=0.501 * last_digit), epoch


@pytest.mark.parametrize("epoch", [0, 1, 3, 6, 150, 299])
def test_a_lagging_schedule_is_timms_stepped_after_each_epoch_with_that_epochs_number(epoch):
    optimizers = [torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=DEIT.learning_rate) for _ in range(2)]
    timms = CosineLRScheduler(optimizers[0], t_initial=300, lr_min=1e-5, warmup_t=5, warmup_lr_init=1e-6)
    for finished in range(epoch):
        timms.step(finished)
    found = LearningRate(optimizers[1], DEIT, num_steps=300).set(epoch)
    assert found == pytest.approx(optimizers[0].param_groups[0]["lr"])


def test_weight_decay_on_biases_spares_only_what_the_model_exempts():
    model = build_model("sa_quadratic", num_classes=10, image_size=32, depth=2, dim=8, hidden_dim=8)
    recipe = Recipe(
        name="all", epochs=1, batch_size=1, learning_rate=0.1, optimizer="sgd", weight_decay=1e-4, decay_biases=True
    )
    optimizer = build_optimizer(model, recipe)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    free = {name for name, p in model.named_parameters() if decay[id(p)] == 0}
    assert free == {f"blocks.{layer}.attention.{part}" for layer in (0, 1) for part in ("spreads", "centers_H2")}
    assert set(decay.values()) == {0, 1e-4}


MULTISTEP = Recipe(
    name="steps", epochs=30, batch_size=1, learning_rate=0.1, schedule="multistep", milestones=(8, 15, 25)
)


@pytest.mark.parametrize("unit", ["step", "epoch"])
@pytest.mark.parametrize("steps_per_epoch", [1, 7, 500])
def test_the_multistep_learning_rate_is_torchs_stepped_per_epoch(unit, steps_per_epoch):
    optimizer, reference = (torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1) for _ in range(2))
    torchs = torch.optim.lr_scheduler.MultiStepLR(reference, milestones=[8, 15, 25], gamma=0.1)
    recipe = MULTISTEP.model_copy(update={"schedule_unit": unit})
    learning_rate = LearningRate(optimizer, recipe, num_steps=30 * steps_per_epoch)
    for epoch in range(30):
        expected = reference.param_groups[0]["lr"]
        for k in {0, steps_per_epoch // 2, steps_per_epoch - 1}:
            assert learning_rate.set(epoch * steps_per_epoch + k) == pytest.approx(expected)
        reference.step()
        torchs.step()


@pytest.mark.parametrize(("unit", "expected"), [("step", 0.05 * 2.5), ("epoch", 0.05 * 2)])
def test_multistep_milestones_count_from_the_start_of_training_and_warm_up_comes_before_them(unit, expected):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.2)
    recipe = MULTISTEP.model_copy(update={"learning_rate": 0.2, "warmup_epochs": 4, "schedule_unit": unit})
    learning_rate = LearningRate(optimizer, recipe, num_steps=300)
    at = {epoch: learning_rate.set(int(epoch * 10)) for epoch in (0, 2.5, 4, 7.9, 8, 15)}
    assert at == pytest.approx({0: 0, 2.5: expected, 4: 0.2, 7.9: 0.2, 8: 0.02, 15: 0.002})


def test_without_milestones_the_multistep_learning_rate_is_constant():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    learning_rate = LearningRate(optimizer, MULTISTEP.model_copy(update={"milestones": ()}), num_steps=30)
    assert {learning_rate.set(step) for step in range(30)} == {0.1}


@pytest.mark.parametrize("steps_per_epoch", [1, 7])
def test_a_cosine_after_the_warm_up_is_that_of_the_authors_lambda(steps_per_epoch):
    """Linear to the peak in the first share of the epochs, then half a cosine over the others."""
    recipe = Recipe(
        name="r", epochs=20, batch_size=1, learning_rate=0.1, optimizer="sgd", schedule="cosine",
        schedule_unit="epoch", warmup_epochs=4, cosine_after_warmup=True,
    )  # fmt: skip
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    learning_rate = LearningRate(optimizer, recipe, num_steps=20 * steps_per_epoch)
    for step in range(20 * steps_per_epoch):
        epoch = step // steps_per_epoch
        factor = epoch / 4 if epoch < 4 else (1 + math.cos(math.pi * (epoch - 4) / 16)) / 2
        assert learning_rate.set(step) == pytest.approx(0.1 * factor, abs=1e-12)
