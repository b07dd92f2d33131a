"""Checkpoints: folders that appear at once, under ``checkpoint/step-<n>``, and hold all that a resume needs.

Since every random number is a function of (seed, step), weights and optimizer state are all there is to keep.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save as serialize
from torch import Tensor

from suite.errors import RunError
from suite.files import disk_error, write_atomically
from suite.records import RunDirectory
from suite.training.distributed import Ranks

_PREFIX = "step-"
_PARTIAL = "partial-"


def save(engine: Any, run: RunDirectory, ranks: Ranks, step: int, client_state: dict[str, Any]) -> None:
    """Write the state after ``step`` steps, make it visible by one rename, then drop older ones. All ranks call it.

    Raises:
        RunError: when it cannot be written; the previous checkpoint is still there.
    """
    folder = run.checkpoint_path
    partial = folder / f"{_PARTIAL}{step}"
    if ranks.is_first:
        shutil.rmtree(partial, ignore_errors=True)
    ranks.barrier()
    try:
        engine.save_checkpoint(str(folder), tag=partial.name, client_state=client_state, save_latest=False)
        ranks.barrier()
        if ranks.is_first:
            _flush(partial)
            partial.rename(folder / f"{_PREFIX}{step}")
            for other in folder.iterdir():
                if other.name != f"{_PREFIX}{step}":
                    shutil.rmtree(other, ignore_errors=True)
    except (OSError, RuntimeError) as error:
        cause = _as_os_error(error, folder)
        if ranks.is_first:
            shutil.rmtree(partial, ignore_errors=True)
        raise disk_error(partial, cause) from error
    ranks.barrier()


def newest_step(run: RunDirectory) -> int | None:
    """The step of the newest complete checkpoint, or None."""
    if not run.checkpoint_path.is_dir():
        return None
    names = [path.name.removeprefix(_PREFIX) for path in run.checkpoint_path.glob(f"{_PREFIX}*")]
    return max((int(name) for name in names if name.isdecimal()), default=None)


def load_newest(engine: Any, run: RunDirectory, ranks: Ranks) -> tuple[int, dict[str, Any]]:
    """Restore the newest checkpoint: (steps done, client state); (0, {}) where there is none.

    Raises:
        RunError: if it cannot be read.
    """
    step = newest_step(run)
    if step is None:
        return 0, {}
    tag = f"{_PREFIX}{step}"
    try:
        path, client_state = engine.load_checkpoint(str(run.checkpoint_path), tag=tag)
    except (OSError, RuntimeError, EOFError, KeyError) as error:
        path, client_state = None, {"error": error}
    if path is None:
        raise RunError(
            f"cannot resume from {run.checkpoint_path / tag}: {client_state}. "
            "Delete that folder and use --retry-failed to train this run from its start."
        )
    ranks.barrier()
    return step, client_state


def _as_os_error(error: OSError | RuntimeError, folder: Path) -> OSError:
    """torch.save reports a full disk as a RuntimeError about positions: look at the disk itself."""
    if isinstance(error, OSError):
        return error
    if shutil.disk_usage(folder).free < 1_000_000:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return OSError(str(error).splitlines()[0])


def _flush(folder: Path) -> None:
    """Force the files to the disk before they get their final name."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def save_weights(weights: dict[str, Tensor], path: Path) -> None:
    """A finished model's state as safetensors, visible at once."""
    write_atomically(path, serialize(weights))
