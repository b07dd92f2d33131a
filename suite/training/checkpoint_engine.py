"""The files of a DeepSpeed checkpoint: hashed as they are written, and read as data, never as code.

``distributed`` imports it once DeepSpeed may start, and gives it to the engine in place of DeepSpeed's own, which
unpickles whatever a file asks for.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch
from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from deepspeed.runtime.fp16.loss_scaler import LossScaler
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils.tensor_fragment import fragment_address

_KNOWN_TYPES = [LossScaler, ZeroStageEnum, fragment_address]  # ZeRO keeps these beside its tensors


class HashedDataFiles(TorchCheckpointEngine):  # type: ignore[misc]  # DeepSpeed is untyped
    """Writes and reads the files of checkpoints.

    Attributes:
        digests: the SHA-256, in hex, of each file that this rank has written last, by its name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[str, str] = {}

    def save(self, state_dict: Any, path: str) -> None:
        """Write one file, and keep the digest of what was meant to be written."""
        with Path(path).open("wb") as file:
            hashed = _HashedFile(file)
            torch.save(state_dict, cast(IO[bytes], hashed))
        self.digests[Path(path).name] = hashed.sha256.hexdigest()

    def load(self, path: str, map_location: Any = None) -> Any:
        """Read one file.

        Raises:
            pickle.UnpicklingError: if it asks for any other function or type, none of which is called.
        """
        with torch.serialization.safe_globals(_KNOWN_TYPES):
            return torch.load(path, map_location=map_location, weights_only=True)


class _HashedFile:
    """Hashes what passes through it, which torch writes from front to back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.sha256 = file, hashlib.sha256()

    def write(self, data: memoryview) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()
