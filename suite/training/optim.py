"""Optimizer and learning rate from a recipe."""

from __future__ import annotations

import torch
from timm.scheduler import CosineLRScheduler
from torch import nn

from suite.spec import Recipe


def build_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW or SGD; no weight decay on biases, other 1-D parameters and what the model exempts."""
    ask = getattr(model, "no_weight_decay", set)
    exempt: set[str] = set(ask())
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (free if parameter.ndim <= 1 or name in exempt else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": free, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=recipe.momentum)
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, eps=recipe.adam_epsilon)


class LearningRate:
    """The recipe's learning rate at any step, set on the optimizer's groups by timm's cosine schedule.

    With ``schedule_unit="epoch"`` it is constant within an epoch, as in DeiT's code.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, recipe: Recipe, num_steps: int) -> None:
        self._optimizer = optimizer
        self._recipe = recipe
        self._epochs_per_step = recipe.epochs / num_steps
        self._cosine = CosineLRScheduler(
            optimizer,
            t_initial=recipe.epochs,
            lr_min=recipe.min_learning_rate,
            warmup_t=recipe.warmup_epochs,
            warmup_lr_init=recipe.warmup_learning_rate,
        )

    def set(self, step: int) -> float:
        """Set and return the learning rate of ``step`` (counted from 0)."""
        if self._recipe.schedule == "cosine":
            epoch = step * self._epochs_per_step
            self._cosine.step(int(epoch + 1e-9) if self._recipe.schedule_unit == "epoch" else epoch)
        return self.current

    @property
    def current(self) -> float:
        """The one that was set last."""
        return float(self._optimizer.param_groups[0]["lr"])
