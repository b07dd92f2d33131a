"""Compiled training steps are resumed bit by bit, by code that one run makes and the others find."""

import time

import pytest
from safetensors.torch import load_file

from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.custom_model import ModelSource, hash_source
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint_files import Layout

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 30.0, "batch_size": 50, "warmup_epochs": 1.0})
NETWORK = """
from torch import nn

def network(num_classes, image_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * image_size**2, num_classes), nn.BatchNorm1d(num_classes))
"""  # of few kernels, each of which takes a second to compile; the making of code must leave its statistics alone
SOURCE = ModelSource(kind="file", name="network", version=hash_source(NETWORK.encode()), code=NETWORK)
EXPERIMENT = Experiment(model="small", model_source=SOURCE, dataset="cifar10_sample", image_size=32, recipe=RECIPE)
COMPILED = Resources(compiled=True, checkpoint_every_s=0.1)


@pytest.fixture
def train(start, tmp_path):
    """Trains the experiment in a process of its own, and kills that at its first checkpoint if told to."""
    before = f"import os; os.environ['SUITE_CACHE_DIR'] = {str(tmp_path)!r}\n"

    def train(name, is_killed=False):
        run = RunDirectory.of(tmp_path / name, EXPERIMENT)
        run.create(EXPERIMENT)
        (process,) = start(run, COMPILED, before)
        while is_killed and process.is_alive() and run.newest_checkpoint() is None:
            time.sleep(0.005)
        if is_killed:
            process.kill()
        process.join()
        while run.is_claimed():
            time.sleep(0.005)
        return run

    return train


def test_killed_and_resumed_equals_uninterrupted_at_atol_0_by_code_that_was_made_once(train, tmp_path):
    whole = train("whole")
    assert whole.read_result() is not None, whole.log_path.read_text()
    made = sorted(tmp_path.rglob("*.so"))
    assert made
    killed = train("killed", is_killed=True)
    assert killed.newest_checkpoint() is not None, killed.log_path.read_text()
    assert killed.read_result() is None
    killed = train("killed")
    assert killed.read_result().compiled
    assert killed.read_result().num_attempts == 2
    assert sorted(tmp_path.rglob("*.so")) == made
    expected, found = load_file(whole.weights_path), load_file(killed.weights_path)
    assert [name for name in expected if not expected[name].equal(found[name])] == []


def test_a_checkpoint_of_eager_steps_says_of_itself_what_it_said_before_there_were_compiled_ones():
    assert Layout.of(Resources()).model_dump() == {"zero_stage": 0, "num_ranks": 0}
    assert Layout.of(Resources(compiled=True)) != Layout.of(Resources())
