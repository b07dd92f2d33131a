"""How the files of a DeepSpeed checkpoint are read: as tensors and plain data, never as code.

``distributed`` imports it once DeepSpeed may start, and gives it to the engine in place of DeepSpeed's own, which
unpickles whatever a file asks for.
"""

from __future__ import annotations

from typing import Any

import torch
from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from deepspeed.runtime.fp16.loss_scaler import LossScaler
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils.tensor_fragment import fragment_address

_KNOWN_TYPES = [LossScaler, ZeroStageEnum, fragment_address]  # ZeRO keeps these beside its tensors


class DataOnlyFiles(TorchCheckpointEngine):  # type: ignore[misc]  # DeepSpeed is untyped
    """Reads what DeepSpeed has written, and refuses a file that holds anything but data."""

    def load(self, path: str, map_location: Any = None) -> Any:
        """Read one file.

        Raises:
            pickle.UnpicklingError: if it asks for any other function or type, none of which is called.
        """
        with torch.serialization.safe_globals(_KNOWN_TYPES):
            return torch.load(path, map_location=map_location, weights_only=True)
