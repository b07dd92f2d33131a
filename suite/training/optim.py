"""Optimizer from a recipe."""

from typing import Any

import torch
from torch import nn

from suite.spec.recipe import Recipe
from suite.training.accelerator import is_gpu


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
    is_on_gpu = device is not None and is_gpu(device)
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
