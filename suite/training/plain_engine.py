"""The engine of a rank alone at ZeRO stage 0: plain PyTorch, with the methods that a training calls of DeepSpeed's.

A step costs what PyTorch's does, and gives the weights of DeepSpeed's bit by bit. Its checkpoints are DeepSpeed's of
stage 0: each of the two goes on from what the other has written.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from suite.training.accelerator import record_passes
from suite.training.checkpoint_files import HashedFiles

_FILE = "mp_rank_00_model_states.pt"  # DeepSpeed's name
_NO_CLIENTS = ("module", "optimizer", "global_steps", "skipped_steps", "dp_world_size", "mp_world_size")


class PlainEngine:
    """Takes steps of a model, which is moved to ``device``, by an optimizer, in place.

    Args:
        accumulation: number of micro-batches of a step.
        is_bf16: true for forward passes by bf16 autocast.

    Attributes:
        global_steps: number of steps taken, also before a checkpoint that was read.
        checkpoint_engine: files of checkpoints, with the digests of those that were written last.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, accumulation: int, is_bf16: bool, device: torch.device
    ) -> None:
        self.module = model.to(device)
        self.global_steps = 0
        self.checkpoint_engine = HashedFiles()
        self._optimizer, self._accumulation, self._num_pending = optimizer, accumulation, 0
        self._parameters = list(model.parameters())
        self._is_bf16 = is_bf16
        self._autocast = torch.autocast(device.type, torch.bfloat16) if is_bf16 else nullcontext()

    def train(self) -> None:
        self.module.train()

    def __call__(self, images: Tensor) -> Tensor:
        """The logits, (B, 3, S, S) -> (B, num_classes)."""
        with self._autocast:
            logits: Tensor = self.module(images)
        return logits

    def record(self, images: Tensor) -> None:
        """Record later passes in training, on images of this shape, as CUDA graphs; see ``record_passes``."""
        if self._is_bf16:  # graphs go with no cache of cast weights, of which a pass casts each once
            self._autocast = torch.autocast(images.device.type, torch.bfloat16, cache_enabled=False)
        with self._autocast:
            record_passes(self.module, images)

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a micro-batch's mean loss to those of the step."""
        (loss / self._accumulation if self._accumulation > 1 else loss).backward()

    def step(self) -> None:
        """Take a step, if this was its last micro-batch."""
        self._num_pending = (self._num_pending + 1) % self._accumulation
        if self._num_pending:
            return
        for parameter in self._parameters:
            if parameter.grad is None and parameter.requires_grad and parameter.numel():
                parameter.grad = torch.zeros_like(parameter)  # as DeepSpeed: the optimizer decays it, and has momentum
        self._optimizer.step()
        for parameter in self._parameters:
            parameter.grad = None
        self.global_steps += 1

    def save_checkpoint(
        self, folder: str, tag: str, client_state: dict[str, Any], save_latest: Literal[False] = False
    ) -> None:
        """Write model, optimizer and more as DeepSpeed does, in the folder ``tag`` of a folder of all checkpoints.

        Args:
            client_state: plain data to be written with weights and optimizer.
            save_latest: ignored; DeepSpeed's engine has it.
        """
        path = Path(folder) / tag / _FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        state = {"module": self.module.state_dict(), "optimizer": self._optimizer.state_dict()}
        counts = {"global_steps": self.global_steps, "skipped_steps": 0, "dp_world_size": 1, "mp_world_size": 1}
        self.checkpoint_engine.save({**state, **counts, **client_state}, str(path))

    def load_checkpoint(self, folder: str, tag: str) -> tuple[str, dict[str, Any]]:
        """Go on from what ``save_checkpoint``, or DeepSpeed, has written; returns the file and the client state."""
        path = str(Path(folder) / tag / _FILE)
        state = self.checkpoint_engine.load(path, map_location="cpu")
        self.module.load_state_dict(state["module"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.global_steps = state["global_steps"]
        return path, {name: value for name, value in state.items() if name not in _NO_CLIENTS}
