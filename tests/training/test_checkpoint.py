"""Checkpoints of a real engine: what is written is what is read back, or else refused."""

import os
import random

import pytest
import torch
import torch.nn.functional as F

from suite.base.errors import RunError
from suite.base.files import sha256_of
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.store import attempts
from suite.store.run_directory import RunDirectory
from suite.training import checkpoint, distributed
from suite.training.checkpoint_files import CheckpointManifest, DamageError, Origin
from suite.training.optim import build_optimizer

ORIGIN = Origin(experiment="deit_micro-0/seed-0")
RECIPE = DEIT_LAPTOP.model_copy(update={"batch_size": 8})


def make_engine(zero_stage=0, seed=0):
    torch.manual_seed(seed)
    model = build_model("deit_micro", num_classes=10, image_size=32, dim=18, depth=1)
    optimizer = build_optimizer(model, RECIPE, torch.device("cpu"))
    return distributed.initialize(model, optimizer, RECIPE, Resources(zero_stage=zero_stage))


def take_step(engine):
    batch = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(engine.global_steps))
    engine.backward(F.cross_entropy(engine(batch).float(), torch.arange(8)))
    engine.step()


def weights(engine, zero_stage=0):
    return distributed.full_state_dict(engine, zero_stage)


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_a_training_goes_on_from_a_checkpoint_bit_by_bit(tmp_path, process_group, zero_stage):
    run, resources = RunDirectory(tmp_path), Resources(zero_stage=zero_stage)
    engine = make_engine(zero_stage)
    take_step(engine)
    checkpoint.save(engine, run, process_group, resources, ORIGIN, 1, {"number": 7})
    resumed = make_engine(zero_stage, seed=1)
    assert checkpoint.load_newest(resumed, run, process_group, resources, ORIGIN)["number"] == 7
    for one in (engine, resumed):
        take_step(one)
    expected, found = weights(engine, zero_stage), weights(resumed, zero_stage)
    assert [name for name in expected if not expected[name].equal(found[name])] == []


def wrap(engine, seed):
    """DeepSpeed's engine at stage 0, or that of a rank alone."""
    torch.manual_seed(seed)
    model = build_model("deit_micro", num_classes=10, image_size=32, dim=18, depth=1)
    return engine(model, build_optimizer(model, RECIPE, torch.device("cpu")), RECIPE, Resources())


@pytest.mark.parametrize("from_deepspeed", [True, False])
def test_a_rank_alone_and_deepspeed_go_on_from_each_others_checkpoints_bit_by_bit(
    tmp_path, process_group, from_deepspeed
):
    engines = [distributed.wrap_in_deepspeed, distributed.initialize]
    before, after = engines if from_deepspeed else reversed(engines)
    run, written = RunDirectory(tmp_path), wrap(before, seed=0)
    take_step(written)
    checkpoint.save(written, run, process_group, Resources(), ORIGIN, 1, {"number": 7})
    resumed = wrap(after, seed=1)
    assert load(resumed, run, process_group)["number"] == 7
    for one in (written, resumed):
        take_step(one)
    expected, found = weights(written), weights(resumed)
    assert [name for name in expected if not expected[name].equal(found[name])] == []


@pytest.fixture(scope="module")
def engine(process_group):
    return make_engine()


@pytest.fixture
def saved(tmp_path, engine, process_group):
    """A run with checkpoints after steps 1, 2 and 3."""
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    attempts.record_start(run, num_ranks=1)
    for step in (1, 2, 3):
        checkpoint.save(engine, run, process_group, Resources(), ORIGIN, step, {"number": step})
    return run


def flip_bit(path, place):
    data = bytearray(path.read_bytes())
    data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)


def load(engine, run, ranks, origin=ORIGIN, **resources):
    return checkpoint.load_newest(engine, run, ranks, Resources(**resources), origin)


def test_every_flipped_bit_of_a_checkpoint_is_noticed(saved):
    folder, draw = saved.checkpoint_at(3), random.Random(0)
    for path in sorted(folder.iterdir()):
        whole, num_bits = path.read_bytes(), 8 * path.stat().st_size
        for place in [0, num_bits - 1, *(draw.randrange(num_bits) for _ in range(100))]:
            flip_bit(path, place)
            with pytest.raises(DamageError):
                CheckpointManifest.read(folder)
            path.write_bytes(whole)
    CheckpointManifest.read(folder)


def contents_below(folder):
    return {path.relative_to(folder): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("zero_stage", [0, 1])
def test_whatever_else_lies_among_checkpoints_or_behind_a_link_stays(tmp_path, process_group, zero_stage):
    run, resources, engine = RunDirectory(tmp_path / "run"), Resources(zero_stage=zero_stage), make_engine(zero_stage)
    foreign = tmp_path / "foreign"
    for folder in (run.checkpoint_path, foreign / "step-1"):
        for name in ("mine", "step-by-step", "partial-mine", "unusable-1", "step-007"):
            (folder / name).mkdir(parents=True)
            (folder / name / "file").write_text("mine")
    (run.checkpoint_path / "step-8").symlink_to(foreign)
    (run.checkpoint_path / "step-9").write_text("a file of mine")
    before = contents_below(run.checkpoint_path), contents_below(foreign)
    for step in (1, 2, 3):
        checkpoint.save(engine, run, process_group, resources, ORIGIN, step, {})
    assert run.checkpoint_steps() == [3, 2]
    run.drop_checkpoints()
    assert (contents_below(run.checkpoint_path), contents_below(foreign)) == before


def test_a_link_in_the_place_of_the_checkpoints_is_refused_and_what_it_leads_to_stays(tmp_path, engine, process_group):
    run, foreign = RunDirectory(tmp_path / "run"), tmp_path / "foreign"
    for name in ("mine", "step-1", "partial-2"):
        (foreign / name).mkdir(parents=True)
    run.path.mkdir()
    run.checkpoint_path.symlink_to(foreign)
    with pytest.raises(RunError, match="checkpoint is a link"):
        load(engine, run, process_group)
    with pytest.raises(RunError, match="checkpoint is a link"):
        checkpoint.save(engine, run, process_group, Resources(), ORIGIN, 2, {})
    run.drop_checkpoints()
    assert sorted(path.name for path in foreign.iterdir()) == ["mine", "partial-2", "step-1"]


def test_training_goes_on_from_the_checkpoint_before_a_damaged_one_and_counts_that(
    saved, engine, process_group, capsys
):
    assert saved.checkpoint_steps() == [3, 2]
    flip_bit(saved.checkpoint_at(3) / "mp_rank_00_model_states.pt", 80_000)
    assert load(engine, saved, process_group)["number"] == 2
    assert "the checkpoint after step 3 cannot be gone on from: mp_rank_00" in capsys.readouterr().out
    assert [(one.from_step, one.num_unusable_checkpoints) for one in attempts.read_attempts(saved)] == [(2, 1)]
    checkpoint.save(engine, saved, process_group, Resources(), ORIGIN, 3, {"number": 4})
    assert load(engine, saved, process_group)["number"] == 4
    assert sorted(path.name for path in saved.checkpoint_path.iterdir()) == ["step-2", "step-3"]


@pytest.mark.parametrize("damage", ["cut", "missing", "fifo", "no manifest"])
def test_training_starts_anew_where_no_checkpoint_is_whole(saved, engine, process_group, damage):
    for step in (2, 3):
        path = saved.checkpoint_at(step) / (
            "manifest.json" if damage == "no manifest" else "mp_rank_00_model_states.pt"
        )
        data = path.read_bytes()
        path.unlink()
        if damage == "cut":
            path.write_bytes(data[:-1])
        if damage == "fifo":
            os.mkfifo(path)
    assert load(engine, saved, process_group) == {}
    assert [(one.from_step, one.num_unusable_checkpoints) for one in attempts.read_attempts(saved)] == [(0, 2)]


def test_a_checkpoint_that_another_attempt_could_go_on_from_is_kept(saved, engine, process_group):
    with pytest.raises(RunError, match="former --zero-stage"):
        load(engine, saved, process_group, zero_stage=1)
    with pytest.raises(RunError, match="former --zero-stage, --ranks-per-node and --compile"):
        load(engine, saved, process_group, compiled=True)
    assert load(engine, saved, process_group)["number"] == 3
    (saved.checkpoint_at(3) / "layout.json").touch()
    with pytest.raises(RunError, match="from before checkpoints had digests"):
        load(engine, saved, process_group)
    assert saved.checkpoint_steps() == [3, 2]


@pytest.mark.parametrize(
    "ours",
    [
        {"experiment": "deit_micro-0/seed-1"},
        {"parent": "deit_micro-1/seed-0"},
        {"parent_sha256": "0"},
        {"teacher_sha256": "0"},
    ],
    ids=str,
)
def test_what_another_run_or_another_parent_has_made_is_not_gone_on_from(saved, engine, process_group, ours, capsys):
    origin = ORIGIN.model_copy(update=ours)
    checkpoint.save(engine, saved, process_group, Resources(), origin, 4, {"number": 4})
    assert load(engine, saved, process_group)["number"] == 3
    assert "the checkpoint after step 4 cannot be gone on from: it is of" in capsys.readouterr().out
    assert load(engine, saved, process_group, origin) == {}
    assert attempts.read_attempts(saved)[-1].num_unusable_checkpoints == 1


class Prepared:
    """Becomes an open door when unpickled without care."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zero_stage", [0, 1])
def test_a_prepared_checkpoint_is_refused_and_starts_nothing(tmp_path, process_group, zero_stage):
    run = RunDirectory(tmp_path / "run")
    engine = make_engine(zero_stage)
    checkpoint.save(engine, run, process_group, Resources(zero_stage=zero_stage), ORIGIN, 1, {})
    folder = run.checkpoint_at(1)
    manifest = CheckpointManifest.read(folder)
    for name in manifest.files:
        torch.save(Prepared(tmp_path / "opened"), folder / name)
    manifest.model_copy(update={"files": {name: sha256_of(folder / name) for name in manifest.files}}).write(folder)
    with pytest.raises(RunError, match=r"cannot resume from .*step-1.*UnpicklingError"):
        load(engine, run, process_group, zero_stage=zero_stage)
    assert not (tmp_path / "opened").exists()
