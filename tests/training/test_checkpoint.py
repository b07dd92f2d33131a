"""Checkpoints of a real engine: what is written is what is read back, or else refused."""

import os

import pytest
import torch
import torch.nn.functional as F

from suite.errors import RunError
from suite.models.build import build_model
from suite.protocols.deit import DEIT_LAPTOP
from suite.records import RunDirectory
from suite.spec import Resources
from suite.training import checkpoint, distributed
from suite.training.optim import build_optimizer

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
    checkpoint.save(engine, run, process_group, resources, 1, {"number": 7})
    resumed = make_engine(zero_stage, seed=1)
    assert checkpoint.load_newest(resumed, run, process_group, resources)["number"] == 7
    for one in (engine, resumed):
        take_step(one)
    expected, found = weights(engine, zero_stage), weights(resumed, zero_stage)
    assert [name for name in expected if not expected[name].equal(found[name])] == []


class Prepared:
    """What it becomes when unpickled without care: an open door."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zero_stage", [0, 1])
def test_a_prepared_checkpoint_is_refused_and_starts_nothing(tmp_path, process_group, zero_stage):
    run, resources = RunDirectory(tmp_path / "run"), Resources(zero_stage=zero_stage)
    engine = make_engine(zero_stage)
    checkpoint.save(engine, run, process_group, resources, 1, {})
    for file in run.checkpoint_path.glob("step-1/*.pt"):
        torch.save(Prepared(tmp_path / "opened"), file)
    with pytest.raises(RunError, match=r"cannot resume from .*step-1.*UnpicklingError"):
        checkpoint.load_newest(engine, run, process_group, resources)
    assert not (tmp_path / "opened").exists()
