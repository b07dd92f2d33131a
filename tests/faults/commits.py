"""Commits that are killed, and what the next process does: a checkpoint, a result, a removal of checkpoints."""

import functools
import hashlib
import shutil
from pathlib import Path

import torch
import torch.nn.functional as F
from kills import alone, run_alone
from whole_files import EXPERIMENT, MADE, make_begun_run, make_result

from suite.base.files import sha256_of
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status
from suite.training import checkpoint, distributed
from suite.training.checkpoint_files import CheckpointManifest, Layout, Origin
from suite.training.optim import build_optimizer

_RECIPE = DEIT_LAPTOP.model_copy(update={"batch_size": 8})
_ORIGIN = Origin(experiment="deit_micro-0/seed-0")
_COMMITTED, _LAST = 3, 4  # steps: the one whose checkpoint is killed, and that at which weights are compared


def make_checkpoint(folder):
    """The newest of the checkpoints that a training leaves."""
    shutil.copytree(_make_checkpoints(), folder, dirs_exist_ok=True)
    return RunDirectory(folder).checkpoint_at(_COMMITTED)


@functools.cache
def _make_checkpoints():
    made = Path(MADE.name) / "checkpoints"
    made.mkdir()
    assert alone(run_alone, commit_checkpoint, made), (made / "log.txt").read_text()
    return made


def _engine(seed):
    ranks = distributed.start(Resources())
    torch.manual_seed(seed)
    model = build_model("deit_micro", num_classes=10, image_size=32, dim=18, depth=1)
    optimizer = build_optimizer(model, _RECIPE, torch.device("cpu"))
    return ranks, distributed.initialize(model, optimizer, _RECIPE, Resources())


def _take_step(engine):
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(engine.global_steps))
    engine.backward(F.cross_entropy(engine(images).float(), torch.arange(8)))
    engine.step()


def commit_checkpoint(folder, begin):
    """Three steps with a checkpoint after each; the commit is the third one."""
    ranks, engine = _engine(seed=0)
    run = RunDirectory(folder)
    for step in range(1, _COMMITTED + 1):
        _take_step(engine)
        if step == _COMMITTED:
            begin()
        checkpoint.save(engine, run, ranks, Resources(), _ORIGIN, step, {"step": step})


def go_on_from_checkpoint(folder, begin):
    """Another network goes on from the newest checkpoint, and leaves the digest of its weights."""
    ranks, engine = _engine(seed=1)
    run = RunDirectory(folder)
    step = checkpoint.load_newest(engine, run, ranks, Resources(), _ORIGIN)["step"]
    assert step in (_COMMITTED - 1, _COMMITTED)
    for _ in range(step, _LAST):
        _take_step(engine)
    checkpoint.save(engine, run, ranks, Resources(), _ORIGIN, _LAST, {"step": _LAST})
    assert sorted(path.name for path in run.checkpoint_path.iterdir()) == [f"step-{step}", f"step-{_LAST}"]
    weights = distributed.full_state_dict(engine, 0)
    digest = hashlib.sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest()
    (folder / "digest").write_text(digest)


def read_digest(folder):
    return (folder / "digest").read_text()


def commit_removal(folder, begin):
    """Four checkpoints of files, the links and folders of somebody else beside them; the commit drops all but one."""
    run = RunDirectory(folder)
    for step in range(1, 5):
        written = run.checkpoint_at(step)
        (written / "deeper").mkdir(parents=True)
        for name in ("weights", "deeper/state"):
            (written / name).write_bytes(bytes([step]) * 100)
        files = {name: sha256_of(written / name) for name in ("weights", "deeper/state")}
        CheckpointManifest(layout=Layout.of(Resources()), origin=_ORIGIN, files=files).write(written)
    run.set_checkpoint_aside(2)
    (run.checkpoint_path / "step-of-mine").mkdir()
    begin()
    run.drop_checkpoints(num_kept=1)


def go_on_from_removal(folder, begin):
    """Every checkpoint that has a complete one's name is whole; then the next save drops what is left."""
    run = RunDirectory(folder)
    for step in run.checkpoint_steps():
        CheckpointManifest.read(run.checkpoint_at(step))
    run.drop_checkpoints(num_kept=1)


def list_checkpoints(folder):
    return sorted(str(path.relative_to(folder)) for path in RunDirectory(folder).checkpoint_path.rglob("*"))


def commit_result(folder, begin):
    """A run that ends: its weights, then its result, which drops failure and checkpoints."""
    run = make_begun_run(folder)
    run.failure_path.unlink()
    run.checkpoint_at(3).mkdir(parents=True)
    begin()
    _finish(run)


def _finish(run):
    digest = checkpoint.save_weights({"weights": torch.arange(1000.0)}, run.weights_path)
    run.write_result(make_result(digest))


def go_on_to_result(folder, begin):
    """Do as the next process does: nothing where there is a result, else the same end."""
    run = RunDirectory.of(folder, EXPERIMENT)
    found = read_run_status(run, {})
    assert found.state in ("done", "interrupted"), found
    if found.state == "interrupted":
        _finish(run)


def read_end(folder):
    run = RunDirectory.of(folder, EXPERIMENT)
    return run.read_result(), run.weights_path.read_bytes()
