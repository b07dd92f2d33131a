"""BatchNorm on two ranks: one network is scored, saved and gone on from, though each rank sees its own images."""

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.func import functional_call

from imagesets.loader import ImageLoader
from suite.base.exit_codes import Exit
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.learning_rate import LearningRate
from suite.training.measure.evaluate import evaluate
from suite.training.optim import build_optimizer

RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 1.0, "batch_size": 32, "warmup_epochs": 0.2, "learning_rate": 1e-2})
OPTIONS = {"dim": 8, "depth": 1, "kernel_size": 3, "patch_size": 8}
EXPERIMENT = Experiment(
    model="convmixer", dataset="cifar10_sample", image_size=32, recipe=RECIPE, model_options=OPTIONS, seed=5
)
ASKED_TO_STOP = "import suite.training.environment; suite.training.environment.StopRequest.__bool__ = lambda _: True\n"
SMALL_BATCHES = "import suite.training.measure.evaluate; suite.training.measure.evaluate._BATCH = 30\n"


@pytest.fixture(scope="module")
def trained(execute, tmp_path_factory):
    """The run directory of a training on two ranks, each of which scores some of the 100 test images."""
    run = RunDirectory.of(tmp_path_factory.mktemp("runs"), EXPERIMENT)
    run.create(EXPERIMENT)
    statuses = execute(run, Resources(num_ranks=2, num_evaluations=4), before=SMALL_BATCHES)
    assert statuses == [0, 0], run.log_path.read_text()
    return run


def test_the_images_that_a_batch_norm_sees_at_once_are_recorded_and_told(trained):
    result = trained.read_result()
    assert (result.micro_batch_size, result.has_batch_norm) == (16, True)
    assert "batch norms see 16 images at once, not the batch of 32" in trained.log_path.read_text()


def test_a_run_does_not_go_on_with_batch_norms_of_another_number_of_images(execute, tmp_path):
    run = RunDirectory.of(tmp_path, EXPERIMENT)
    run.create(EXPERIMENT)
    assert execute(run, Resources(micro_batch_size=16), before=ASKED_TO_STOP) == [Exit.INTERRUPTED]
    assert execute(run, Resources(micro_batch_size=8)) == [Exit.FAILED]
    assert "begun with batch norms of 16 images at once, this attempt has 8" in run.read_failure().reason
    run.failure_path.unlink()
    assert execute(run, Resources(num_ranks=2)) == [Exit.DONE] * 2, run.log_path.read_text()


def new_model():
    torch.manual_seed(EXPERIMENT.seed)
    return build_model(EXPERIMENT.model, num_classes=10, image_size=32, **OPTIONS)


def test_the_saved_weights_are_the_network_that_all_ranks_have_scored(trained):
    model = new_model()
    model.load_state_dict(load_file(trained.weights_path))
    accuracy = evaluate(model, ImageLoader(EXPERIMENT), Ranks(0, 1, torch.device("cpu")), "fp32")
    result = trained.read_result()
    assert result.test_loss == pytest.approx(accuracy.loss, rel=2e-6)
    assert result.top1_percent == accuracy.top1_percent


def test_running_statistics_are_the_mean_of_those_that_each_ranks_images_give(trained):
    images, model = ImageLoader(EXPERIMENT), new_model()
    of_rank = [{name: buffer.clone() for name, buffer in model.named_buffers()} for _ in range(2)]
    optimizer = build_optimizer(model, RECIPE)
    learning_rate = LearningRate(optimizer, RECIPE, images.num_steps)
    for step in range(images.num_steps):
        learning_rate.set(step)
        optimizer.zero_grad()
        for rank, buffers in enumerate(of_rank):
            batch, labels = images.train_batch(step, rank, 2)
            loss = F.cross_entropy(
                functional_call(model, buffers, batch), labels, label_smoothing=RECIPE.label_smoothing
            )
            (loss / 2).backward()
        optimizer.step()
    saved = load_file(trained.weights_path)
    for name, first in of_rank[0].items():
        second = of_rank[1][name]
        if first.is_floating_point():
            assert not torch.allclose(first, second, rtol=1e-2), "the ranks' own must differ for this to be a test"
            torch.testing.assert_close(saved[name], (first + second) / 2, rtol=1e-3, atol=1e-4)
        else:
            assert saved[name] == first == images.num_steps
