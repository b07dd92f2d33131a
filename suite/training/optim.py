"""Optimizer and learning rate from a recipe."""

from typing import Any

import numpy as np
import torch
from timm.scheduler import CosineLRScheduler, MultiStepLRScheduler
from timm.scheduler.scheduler import Scheduler
from torch import nn

from suite.spec.recipe import Recipe

ROUNDING = 1e-9  # epochs: what a step times its length may be off


def build_optimizer(
    model: nn.Module, recipe: Recipe, device: torch.device | None = None, is_compiled: bool = False
) -> torch.optim.Optimizer:
    """Build AdamW or SGD. Free of weight decay is what the model exempts and, unless the recipe decays them, 1-D
    parameters: biases, norms and gates.

    Args:
        device: device where the model is trained. On a GPU AdamW is one kernel for many parameters (``fused``), which
            rounds otherwise than torch's default on CPUs.
        is_compiled: true for compiled steps: AdamW is fused on a CPU, too, and takes a third of the time.
    """
    exempt: set[str] = model.no_weight_decay() if hasattr(model, "no_weight_decay") else set()  # type: ignore[operator]
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_free = name in exempt or (parameter.ndim <= 1 and not recipe.decay_biases)
            (free if is_free else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": free, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=recipe.momentum)
    is_on_gpu = device is not None and device.type == "cuda"
    fused = True if is_on_gpu or is_compiled else None  # None: as torch chooses
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, eps=recipe.adam_epsilon, fused=fused)


def clip_before_steps(optimizer: torch.optim.Optimizer, model: nn.Module, max_norm: float) -> None:
    """Scale the model's gradients down to a common norm of at most ``max_norm`` before each of the optimizer's steps.

    In a few kernels, and without waiting for the device. Equal bit by bit to DeepSpeed's clipping of whole gradients,
    which takes two kernels a parameter; ``torch.nn.utils.clip_grad_norm_`` rounds the norm otherwise.
    """

    def clip(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        norm = torch.stack(torch._foreach_norm(gradients)).square().sum().sqrt()
        # a number on the left would be multiplied with 1 / norm, which rounds twice
        scale = torch.full_like(norm, max_norm) / (norm + 1e-6)
        torch._foreach_mul_(gradients, scale.clamp(max=1.0))

    optimizer.register_step_pre_hook(clip)


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
