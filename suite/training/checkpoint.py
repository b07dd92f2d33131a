"""Checkpoints: folders that appear at once, under ``checkpoint/step-<n>``, and hold all that a resume needs.

Since every random number is a function of (seed, step), weights and optimizer state are all there is to keep. The
newest two are kept: where the files of one are not those that were written, or are another run's, training goes on from
the one before.
"""

import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save as serialize
from torch import Tensor

from suite.base.errors import LostPeerError, RunError
from suite.base.files import disk_error, write_atomically
from suite.spec.resources import Resources
from suite.store.attempts import record_fallback
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint_files import UNREADABLE, CheckpointManifest, DamageError, Layout, Origin
from suite.training.distributed import Ranks, watch_for_lost_peers

_NUM_KEPT = 2
_LAYOUT_OF_OLD = "layout.json"  # of a checkpoint from before digests


@watch_for_lost_peers()
def save(
    engine: Any,
    run: RunDirectory,
    ranks: Ranks,
    resources: Resources,
    origin: Origin,
    step: int,
    client_state: dict[str, Any],
) -> None:
    """Write the state after ``step`` steps, make it visible by one rename, then drop older ones. All ranks call it.

    Args:
        resources: resources of this attempt; the checkpoint records their ZeRO stage and ranks.
        origin: the run and the parents whose state this is.
        client_state: plain data, which ``load_newest`` returns.

    Raises:
        RunError: when the disk does not take it, or a rank is lost; the previous checkpoint is still there.
    """
    folder, partial = run.checkpoint_path, run.partial_checkpoint_at(step)
    _refuse_links(folder, partial)
    if ranks.is_first:
        shutil.rmtree(partial, ignore_errors=True)
    ranks.barrier()
    try:
        engine.save_checkpoint(str(folder), tag=partial.name, client_state=client_state, save_latest=False)
        digests = ranks.union(set(engine.checkpoint_engine.digests.items()))  # each rank has written files of its own
        if ranks.is_first:
            manifest = CheckpointManifest(layout=Layout.of(resources), origin=origin, files=dict(sorted(digests)))
            manifest.write(partial)
            _flush(partial)
            partial.rename(run.checkpoint_at(step))
            run.drop_checkpoints(_NUM_KEPT)
    except (OSError, RuntimeError, LostPeerError) as error:
        full = _full_disk(error, folder)
        if ranks.is_first:
            shutil.rmtree(partial, ignore_errors=True)
        if full is None:
            raise
        raise disk_error(partial, full) from error
    ranks.barrier()


def _refuse_links(*folders: Path) -> None:
    """Refuse to write checkpoints into, and remove older ones from, a folder that may be somebody else's."""
    if link := next((folder for folder in folders if folder.is_symlink()), None):
        raise RunError(
            f"{link} is a link; expected a folder of this run's own, as its checkpoints are removed when newer ones "
            "come. Remove the link, or link the whole run store instead, and use --retry-failed."
        )


def load_newest(engine: Any, run: RunDirectory, ranks: Ranks, resources: Resources, origin: Origin) -> dict[str, Any]:
    """Restore the newest checkpoint that is whole and belongs here; returns its client state, {} where there is none.

    Args:
        resources: resources of this attempt; the checkpoint must fit them.
        origin: the run and the parents whose state may be resumed.

    Raises:
        RunError: if it is whole and cannot be read, or was written with another ZeRO stage.
    """
    _refuse_links(run.checkpoint_path)
    step = ranks.hear_first(_choose(run, resources, origin) if ranks.is_first else 0)
    if not step:
        return {}
    path = run.checkpoint_at(step)
    try:
        loaded, client_state = engine.load_checkpoint(str(path.parent), tag=path.name)
    except UNREADABLE as error:
        loaded, client_state = None, {"error": f"{type(error).__name__}: {error}"}
    if loaded is None:
        raise RunError(
            f"cannot resume from {path}: {client_state}. "
            "Delete that folder and use --retry-failed to train this run from its start."
        )
    ranks.barrier()
    return dict(client_state)


def _choose(run: RunDirectory, resources: Resources, origin: Origin) -> int:
    """The step of the newest checkpoint to go on from; 0 = there is none. Newer ones are set aside, and counted."""
    num_unusable = 0
    for step in (*run.checkpoint_steps(), 0):
        reason = _why_unusable(run.checkpoint_at(step), resources, origin) if step else ""
        if not reason:
            break
        print(f"the checkpoint after step {step} cannot be gone on from: {reason}", flush=True)
        run.set_checkpoint_aside(step)
        num_unusable += 1
    if num_unusable:
        record_fallback(run, step, num_unusable)
        print(f"going on from {f'the one after step {step}' if step else 'the start'}", flush=True)
    return step


def _why_unusable(path: Path, resources: Resources, origin: Origin) -> str:
    """Why a checkpoint is not to be gone on from; "" where it is, RunError where this attempt has to change."""
    if (path / _LAYOUT_OF_OLD).exists():
        raise RunError(
            f"the checkpoint {path} is from before checkpoints had digests: end this run with the version that began "
            "it, or delete that folder and use --retry-failed to train it from its start"
        )
    try:
        manifest = CheckpointManifest.read(path)
    except DamageError as error:
        return str(error)
    if manifest.origin != origin:
        return f"it is of {_names(manifest.origin, origin)}, this attempt of {_names(origin, manifest.origin)}"
    written, ours = manifest.layout, Layout.of(resources)
    if written != ours:
        raise RunError(
            f"the checkpoint {path} was written with {written}, this attempt has {ours}: start the grid with the "
            "former --zero-stage, --ranks-per-node and --compile, or delete that folder and use --retry-failed"
        )
    return ""


def _names(origin: Origin, other: Origin) -> str:
    """Name the fields that tell an origin from another one."""
    fields = origin.model_dump()
    return ", ".join(f"{name} {value or 'none'}" for name, value in fields.items() if value != getattr(other, name))


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


def save_weights(weights: dict[str, Tensor], path: Path) -> str:
    """Write a finished model's state as safetensors, visible at once; returns the file's SHA-256 in hex."""
    data = serialize(weights)
    write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()
