"""Checkpoints: folders that appear at once, under ``checkpoint/step-<n>``, and hold all that a resume needs.

Since every random number is a function of (seed, step), weights and optimizer state are all there is to keep.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save as serialize
from torch import Tensor

from suite.errors import LostPeerError, RunError
from suite.files import disk_error, write_atomically
from suite.records import CHECKPOINT_PREFIX, RunDirectory
from suite.spec import Resources
from suite.training.distributed import Ranks, watch_for_lost_peers

_PARTIAL = "partial-"
_LAYOUT = "layout.json"
_UNREADABLE = (  # what torch and DeepSpeed say of files that are no checkpoint
    *(OSError, RuntimeError, EOFError, LookupError, ValueError, TypeError, AttributeError, AssertionError),
    pickle.UnpicklingError,
)


@watch_for_lost_peers()
def save(
    engine: Any, run: RunDirectory, ranks: Ranks, resources: Resources, step: int, client_state: dict[str, Any]
) -> None:
    """Write the state after ``step`` steps, make it visible by one rename, then drop older ones. All ranks call it.

    Args:
        engine: DeepSpeed's.
        run: gets the folder ``checkpoint/step-<step>``.
        resources: their ZeRO stage and ranks are kept with it.
        client_state: plain data, which ``load_newest`` returns.

    Raises:
        RunError: when the disk does not take it, or a rank is lost; the previous checkpoint is still there.
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
            (partial / _LAYOUT).write_text(json.dumps(_layout(resources)))
            _publish(partial, folder / f"{CHECKPOINT_PREFIX}{step}")
    except (OSError, RuntimeError, LostPeerError) as error:
        full = _full_disk(error, folder)
        if ranks.is_first:
            shutil.rmtree(partial, ignore_errors=True)
        if full is None:
            raise
        raise disk_error(partial, full) from error
    ranks.barrier()


def _publish(partial: Path, final: Path) -> None:
    _flush(partial)
    partial.rename(final)
    for other in final.parent.iterdir():
        if other != final:
            shutil.rmtree(other, ignore_errors=True)


def _layout(resources: Resources) -> dict[str, int]:
    """Fields that must match to read a checkpoint back: stages 1 to 3 cut the state in pieces, one a rank."""
    stage = resources.zero_stage
    return {"zero_stage": stage, "num_ranks": resources.num_ranks if stage else 0}


def load_newest(engine: Any, run: RunDirectory, ranks: Ranks, resources: Resources) -> dict[str, Any]:
    """Restore the newest checkpoint and return its client state; {} where there is none.

    Args:
        engine: DeepSpeed's, whose weights and optimizer are replaced.
        resources: of this attempt, which must fit those that it was written with.

    Raises:
        RunError: if it cannot be read, or was written with another ZeRO stage.
    """
    step = run.newest_checkpoint()
    if step is None:
        return {}
    path = run.checkpoint_path / f"{CHECKPOINT_PREFIX}{step}"
    try:
        _check_layout(path, resources)
        loaded, client_state = engine.load_checkpoint(str(run.checkpoint_path), tag=path.name)
    except _UNREADABLE as error:
        loaded, client_state = None, {"error": f"{type(error).__name__}: {error}"}
    if loaded is None:
        raise RunError(
            f"cannot resume from {path}: {client_state}. "
            "Delete that folder and use --retry-failed to train this run from its start."
        )
    ranks.barrier()
    return dict(client_state)


def _check_layout(path: Path, resources: Resources) -> None:
    written, ours = json.loads((path / _LAYOUT).read_text()), _layout(resources)
    if written != ours:
        raise RunError(
            f"the checkpoint {path} was written with {written}, this attempt has {ours}: start the grid with the "
            "former --zero-stage and --ranks-per-node, or delete that folder and use --retry-failed"
        )


def _full_disk(error: Exception, folder: Path) -> OSError | None:
    """The disk's own error, if it is one: torch.save reports a full disk as a RuntimeError about positions."""
    if isinstance(error, OSError):
        return error
    if shutil.disk_usage(folder).free < 1_000_000:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return None


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
