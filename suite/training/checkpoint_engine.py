"""The files of a DeepSpeed checkpoint, see ``checkpoint_files``.

``distributed`` imports it once DeepSpeed may start, and gives it to the engine in place of DeepSpeed's own, which
unpickles whatever a file asks for.
"""

from __future__ import annotations

from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from deepspeed.runtime.fp16.loss_scaler import LossScaler
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils.tensor_fragment import fragment_address

from suite.training.checkpoint_files import HashedFiles


class HashedDataFiles(HashedFiles, TorchCheckpointEngine):  # type: ignore[misc]  # DeepSpeed is untyped
    """Writes and reads the files of DeepSpeed's checkpoints."""

    known_types = (LossScaler, ZeroStageEnum, fragment_address)  # ZeRO keeps these beside its tensors
