"""The files of a checkpoint: hashed as they are written, listed in a manifest, and read as data, never as code."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, cast

import torch
from pydantic import Field
from safetensors import SafetensorError

from suite.base.files import read_file, sha256_of
from suite.base.frozen import Frozen
from suite.base.reading import describe, read_model
from suite.spec.resources import Resources

_MANIFEST = "manifest.json"
UNREADABLE = (  # what torch, DeepSpeed, timm and safetensors say of files that are no weights
    *(OSError, RuntimeError, EOFError, LookupError, ValueError, TypeError, AttributeError, AssertionError),
    *(pickle.UnpicklingError, SafetensorError),
)


class HashedFiles:
    """Writes and reads the files of checkpoints, which hold tensors, plain data and ``known_types``.

    Attributes:
        digests: the SHA-256, in hex, of each file that this rank has written last, by its name.
    """

    def __init__(self, known_types: Sequence[type] = ()) -> None:
        self._known_types: list[Any] = list(known_types)
        self.digests: dict[str, str] = {}

    def save(self, state_dict: Any, path: str) -> None:
        """Write one file, and keep the digest of what was meant to be written."""
        with Path(path).open("wb") as file:
            hashed = _HashedFile(file)
            torch.save(state_dict, cast(IO[bytes], hashed))
        self.digests[Path(path).name] = hashed.sha256.hexdigest()

    def load(self, path: str, map_location: Any = None) -> Any:
        """Read one file; UnpicklingError if it asks for a function or another type, none of which is called."""
        with torch.serialization.safe_globals(self._known_types):
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


class DamageError(Exception):
    """A checkpoint whose files are not those that were written."""


class Layout(Frozen):
    """Fields that must match to go on from a checkpoint bit by bit.

    Stages 1 to 3 cut the state in pieces, one a rank. Compiled steps round otherwise than eager ones.
    """

    zero_stage: int
    num_ranks: int  # 0 in stage 0, whose checkpoints any number of ranks can read
    compiled: bool = Field(False, exclude_if=lambda compiled: not compiled)  # older manifests, and digests, know it not

    @classmethod
    def of(cls, resources: Resources) -> Self:
        stage = resources.zero_stage
        return cls(zero_stage=stage, num_ranks=resources.num_ranks if stage else 0, compiled=resources.compiled)


class Origin(Frozen):
    """Fields that must match to go on from a checkpoint: whose it is, and which runs and files made it what it is."""

    experiment: str  # its id, which names the seed too
    parent: str = ""  # id of the finished run that was taken over
    parent_sha256: str = ""  # of that run's weights
    teacher_sha256: str = ""  # of the file of weights that teaches, where that is no run's


class CheckpointManifest(Frozen):
    """``files`` maps a checkpoint's files to their SHA-256; ``sha256`` is that of the manifest's other fields."""

    layout: Layout
    origin: Origin
    files: dict[str, str]
    sha256: str = ""

    def write(self, folder: Path) -> None:
        """Make it the manifest of a folder whose files are complete."""
        sealed = self.model_copy(sha256=self._own_sha256())
        (folder / _MANIFEST).write_text(sealed.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> CheckpointManifest:
        """Read a folder's manifest; DamageError where it, or a file that it lists, is not what was written."""
        try:
            manifest = read_model(cls, read_file(folder / _MANIFEST))
            if manifest.sha256 != manifest._own_sha256():
                raise DamageError(f"{_MANIFEST} is not what was written")
            for name, expected in manifest.files.items():
                if (found := sha256_of(folder / name)) != expected:
                    raise DamageError(f"{name} has SHA-256 {found}, expected {expected}")
        except (OSError, ValueError) as error:
            raise DamageError(describe(error)) from error
        return manifest

    def _own_sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json(exclude={"sha256"}).encode()).hexdigest()
