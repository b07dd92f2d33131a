"""How long a device waits for images, by the clock of the device itself."""

import time
from typing import Any

import torch

from suite.training.accelerator import is_gpu, mark_time


class Waiting:
    """Adds up the time inside its ``with`` in which the device had nothing to do.

    A CPU has nothing to do while the host waits. A GPU still works through the steps that it was given before: it waits
    from their end until what comes inside is there, as two events on its stream tell.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._spans: list[tuple[Any, Any]] = []  # events where the device is a GPU, else seconds

    def __enter__(self) -> None:
        self._began = self._mark()

    def __exit__(self, *failure: object) -> None:
        self._spans.append((self._began, self._mark()))

    def take_s(self) -> float:
        """Seconds since the last call; on a GPU only once it has done all that it was given."""
        spans, self._spans = self._spans, []
        if not is_gpu(self._device):
            return float(sum(ended - began for began, ended in spans))
        return float(sum(began.elapsed_time(ended) for began, ended in spans)) / 1e3

    def _mark(self) -> Any:
        return mark_time(self._device) if is_gpu(self._device) else time.monotonic()
