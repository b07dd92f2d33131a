"""Learning rate of each step, from a recipe."""

from typing import Any

import numpy as np
import torch
from timm.scheduler import CosineLRScheduler, MultiStepLRScheduler
from timm.scheduler.scheduler import Scheduler

from suite.spec.recipe import Recipe

ROUNDING = 1e-9  # epochs: what a step times its length may be off


class LearningRate:
    """The recipe's learning rate at any step, set on the optimizer's groups by timm's schedules.

    "cosine" falls from the peak to ``min_learning_rate``, "multistep" to a tenth at each milestone; both count from the
    start of training, a cosine by option from the end of the warm-up, in which the learning rate rises linearly.
    "one_cycle" is ConvMixer's, see ``OneCycle``. With ``schedule_unit="epoch"`` the learning rate is constant within an
    epoch. A lag of one epoch is DeiT's: its code steps the schedule after each epoch with that epoch's number, so that
    epochs 0 and 1 both run at the schedule's start.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, recipe: Recipe, num_steps: int) -> None:
        self._optimizer = optimizer
        self._recipe = recipe
        self._epochs_per_step = recipe.epochs / num_steps
        self._schedule = build_schedule(optimizer, recipe)

    def set(self, step: int) -> float:
        """Set and return the learning rate of ``step`` (counted from 0)."""
        if self._schedule is not None:
            ahead = int(self._recipe.schedule == "one_cycle")  # ConvMixer's counts the step that it is for
            epoch = max(0.0, (step + ahead) * self._epochs_per_step - self._recipe.schedule_lag_epochs)
            self._schedule.step(int(epoch + ROUNDING) if self._recipe.schedule_unit == "epoch" else epoch)
        return self.current

    @property
    def current(self) -> float:
        """The one that was set last."""
        return float(self._optimizer.param_groups[0]["lr"])


def build_schedule(optimizer: torch.optim.Optimizer, recipe: Recipe) -> Scheduler | None:
    """Build timm's schedule of the recipe, in epochs; None for a constant learning rate."""
    epochs = recipe.schedule_epochs or recipe.epochs
    warmup: dict[str, Any] = {"warmup_t": recipe.warmup_epochs, "warmup_lr_init": recipe.warmup_learning_rate}
    if recipe.schedule == "cosine":
        before = recipe.warmup_epochs if recipe.cosine_after_warmup else 0.0
        return CosineLRScheduler(
            optimizer,
            t_initial=epochs - before,
            lr_min=recipe.min_learning_rate,
            warmup_prefix=recipe.cosine_after_warmup,
            **warmup,
        )
    if recipe.schedule == "multistep":
        # timm's milestone m applies from m - 1 on; a sum of fractions of an epoch may fall just short of it
        milestones: list[Any] = [milestone + 1 - ROUNDING for milestone in sorted(recipe.milestones)]
        return MultiStepLRScheduler(optimizer, milestones, decay_rate=0.1, warmup_prefix=False, **warmup)
    if recipe.schedule == "one_cycle":
        return OneCycle(optimizer, epochs)
    return None


class OneCycle(Scheduler):  # type: ignore[misc]  # timm is untyped
    """ConvMixer's schedule (arXiv:2201.09792): linear from 0 to the peak at 2/5 of the epochs, to a twentieth of it at
    4/5, and to 0 at the end."""

    def __init__(self, optimizer: torch.optim.Optimizer, epochs: float) -> None:
        self._epochs = epochs
        super().__init__(optimizer, param_group_field="lr")

    def _get_lr(self, t: float) -> list[float]:
        factor = float(np.interp(t / self._epochs, (0, 0.4, 0.8, 1), (0, 1, 0.05, 0)))
        return [factor * peak for peak in self.base_values]
