"""Training steps by torch.compile, and the folder of compiled code that all runs share.

The loop compiles its model before that gets its engine, and has the code made, or found, before the first step.
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor, nn

from suite.base.errors import RunError
from suite.base.files import cache_folder, naming_disk_errors
from suite.spec.recipe import Recipe
from suite.spec.resources import Resources
from suite.training.distributed import Ranks
from suite.training.environment import processor_name


def compile_training(model: nn.Module, resources: Resources) -> None:
    """Let torch.compile carry out a model's forward and backward passes while it trains.

    Evaluations and looks at attention stay eager: they would be other code for each of their batches. Random numbers
    are those of an eager training, and kernels are not chosen by timing them: the same code computes the same bits.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(_code_folder())  # torch itself has set it, as it was imported
    options: dict[str, str | int | bool | Callable[..., Any]] = {
        "fallback_random": True,
        "deterministic": True,
        "compile_threads": resources.threads_per_rank,
    }
    eager = model.forward
    compiled = torch.compile(eager, dynamic=False, options=options)

    def forward(images_BCHW: Tensor) -> Tensor:
        logits: Tensor = (compiled if model.training else eager)(images_BCHW)
        return logits

    model.forward = forward


def make_code(model: nn.Module, images_BCHW: Tensor, recipe: Recipe, ranks: Ranks) -> None:
    """Make the code of a training step, or find what an earlier run has made; nothing of the training changes.

    Of runs that start at once the first of a shape compiles, and the others wait; so do the other ranks of a run.

    Args:
        model: a network in training mode, after ``compile_training``.
        images_BCHW: images of one micro-batch of this rank.

    Raises:
        RunError: torch cannot compile the model, or the code cannot be written.
    """
    folder = _code_folder()
    shape = f"{model} {tuple(images_BCHW.shape)} {recipe.precision} {images_BCHW.device.type} {torch.__version__}"
    made = folder / f"{hashlib.sha256(shape.encode()).hexdigest()[:16]}.made"
    if ranks.is_first:
        with naming_disk_errors(made):
            made.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(made.with_suffix(".lock")):
                if not made.exists():
                    _pass(model, images_BCHW, recipe)
                    made.touch()
    ranks.barrier()
    _pass(model, images_BCHW, recipe)  # outside of the lock: all that wait go on together


def _code_folder() -> Path:
    """One for each kind of processor: code is made for the instructions of the one that compiles."""
    return cache_folder("compiled") / re.sub(r"[^a-z0-9]+", "-", processor_name().lower()).strip("-")


def _pass(model: nn.Module, images_BCHW: Tensor, recipe: Recipe) -> None:
    """Pass forward and backward, which compiles both, without a trace in gradients or running statistics."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.autocast(images_BCHW.device.type, torch.bfloat16, enabled=recipe.precision == "bf16"):
        try:
            logits = model(images_BCHW)
            torch.autograd.grad(logits.float().sum(), parameters, allow_unused=True)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().splitlines()[0]
            raise RunError(
                f"torch cannot compile {type(model).__name__}: {reason}; expected a C++ compiler in the PATH (on a GPU "
                "also Triton) and a model that torch.compile takes. Train without --compile, or add what is missing"
            ) from error
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
