"""Finished runs that nobody has to train."""

import pytest
import torch

from suite.models.registry import build_model
from suite.papers import get_suite
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.store.results import PROTOCOL_VERSION, Result
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint import save_weights
from suite.training.start import start_network


def make_experiment(model, options, **fields):
    given = {"dataset": "cifar10_sample", "image_size": 32, "recipe": DEIT_LAPTOP, "model_options": options} | fields
    return Experiment(model=model, **given)


def write_result(run, experiment, **fields):
    numbers = {"top1_percent": 41.25, "top5_percent": 89.5, "test_loss": 1.5, "best_top1_percent": 42.0}
    num_steps = experiment.num_steps(300)
    seen = {"num_steps": num_steps, "images_seen": num_steps * experiment.recipe.batch_size}
    counts = {"num_parameters": 108_874, "num_train_images": 300, "num_test_images": 200} | seen
    speed = {"train_s": 3.0, "images_per_s": 1280.0, "device": "a CPU", "num_ranks": 1}
    origin = {"protocol_version": PROTOCOL_VERSION, "commit": "v0.2.0", "finished_at": "2026-01-01T00:00:00+00:00"}
    numbers["best_top1_percent"] = max(42.0, fields.get("top1_percent", 0.0))
    given = numbers | counts | speed | origin | {"num_attempts": 1} | fields
    run.write_result(Result(experiment=experiment, **given))


@pytest.fixture
def make_run():
    """A function that makes a run as its training leaves it, of a network whose every number differs from its start."""

    def make(store, model, options, result=None, **fields):
        experiment = make_experiment(model, options, **fields)
        run = RunDirectory.of(store, experiment)
        run.create(experiment)
        network = start_network(run, experiment, 10)
        generator = torch.Generator().manual_seed(1)
        for tensor in [*network.parameters(), *network.buffers()]:
            if tensor.is_floating_point():
                tensor.data += 0.05 * torch.rand(tensor.shape, generator=generator)
        save_weights({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, run.weights_path)
        write_result(run, experiment, **(result or {}))
        again = build_model(model, num_classes=10, image_size=experiment.image_size, **options)
        again.load_state_dict(network.state_dict())
        return run, again.eval()

    return make


@pytest.fixture
def make_custom_model():
    """A function that makes the experiment of a model that is none of the suite's: its source, its options."""
    reference = get_suite("sample_efficiency").profile("laptop").entries[0].experiment

    def make(source, options):
        return reference.model_copy(update={"model": "mine", "model_source": source, "model_options": options})

    return make


@pytest.fixture
def record():
    """A function that writes a run's result."""
    return lambda run: write_result(run, run.read_experiment())
