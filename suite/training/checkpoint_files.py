"""The files of a checkpoint: hashed as they are written, and read as data, never as code."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, ClassVar, cast

import torch


class HashedFiles:
    """Writes and reads the files of checkpoints.

    Attributes:
        known_types: types that a file may hold besides tensors and plain data.
        digests: the SHA-256, in hex, of each file that this rank has written last, by its name.
    """

    known_types: ClassVar[Sequence[type]] = ()

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
        with torch.serialization.safe_globals(list(self.known_types)):
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
