"""The optimizer's groups and the learning rate against DeiT's rules written out."""

import math

import pytest
import torch

from suite.models.build import build_model
from suite.recipes import DEIT
from suite.training.optim import LearningRate, build_optimizer


def test_weight_decay_spares_biases_gates_norms_positions_and_class_token():
    model = build_model("convit_micro", num_classes=10, image_size=32)
    optimizer = build_optimizer(model, DEIT)
    free = {id(p) for group in optimizer.param_groups if group["weight_decay"] == 0 for p in group["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in free}
    assert {"pos_embed", "cls_token", "blocks.0.attn.gating_param", "norm.weight", "head.bias"} <= names
    assert {n for n in names if n.endswith("weight") and "norm" not in n} == set()


@pytest.mark.parametrize("epoch", [0, 3, 5, 150, 299])
def test_the_learning_rate_is_deits_and_constant_within_an_epoch(epoch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=DEIT.learning_rate)
    learning_rate = LearningRate(optimizer, DEIT, num_steps=300 * 10)
    cosine = 1e-5 + 0.5 * (1e-3 - 1e-5) * (1 + math.cos(math.pi * epoch / 300))
    expected = 1e-6 + epoch * (1e-3 - 1e-6) / 5 if epoch < 5 else cosine
    assert [learning_rate.set(epoch * 10 + k) for k in (0, 9)] == pytest.approx([expected] * 2)
