"""The predictions that a run keeps: those of its own weights, whatever the number of ranks, and no others."""

import numpy as np
import pytest
import torch

from imagesets.loader import ImageLoader
from suite.base.errors import RecordError
from suite.base.exit_codes import Exit
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.predictions import read_predictions, write_predictions
from suite.store.run_directory import RunDirectory
from suite.training.distributed import Ranks
from suite.training.measure.evaluate import evaluate
from suite.training.start import trained_network

SHORT = DEIT_LAPTOP.model_copy(update={"epochs": 0.5, "batch_size": 32, "warmup_epochs": 0.0})
DEIT = Experiment(model="deit_micro", dataset="cifar10_sample", image_size=32, recipe=SHORT)


@pytest.fixture(scope="module", params=[1, 2])
def run(request, execute, tmp_path_factory):
    run = RunDirectory.of(tmp_path_factory.mktemp("runs"), DEIT)
    run.create(DEIT)
    assert execute(run, Resources(num_ranks=request.param)) == [Exit.DONE] * request.param, run.log_path.read_text()
    return run


def test_a_run_keeps_what_its_weights_say_of_each_test_image(run):
    network, images = trained_network(run, DEIT, 10).eval(), ImageLoader(DEIT)
    with torch.no_grad():
        scores = [network(images.test_batch(at, 1).images)[0] for at in range(images.num_test)]
    labels = [int(images.test_batch(at, 1).labels) for at in range(images.num_test)]
    found = read_predictions(run)
    assert found.labels.tolist() == labels
    ours = [float(score[said]) for score, said in zip(scores, found.predicted, strict=True)]
    assert ours == pytest.approx([float(score.max()) for score in scores], abs=1e-5)
    assert 100 * found.is_right.mean() == pytest.approx(run.read_result().top1_percent)


def test_predictions_that_are_not_the_results_are_refused(run):
    content = run.predictions_path.read_bytes()
    try:
        run.predictions_path.write_bytes(content + b"\0")
        with pytest.raises(RecordError, match="SHA-256"):
            read_predictions(run)
        run.predictions_path.unlink()
        with pytest.raises(RecordError, match="cannot read"):
            read_predictions(run)
    finally:
        run.predictions_path.write_bytes(content)


def test_the_same_predictions_make_the_same_file(run, tmp_path):
    other = RunDirectory(tmp_path)
    assert write_predictions(other, read_predictions(run)) == run.read_result().predictions_sha256


def test_an_image_that_does_not_count_is_never_right():
    class SomeAreBroken(ImageLoader):
        def test_batches(self, *args):
            for images, labels in super().test_batches(*args):
                yield images, labels.where(torch.arange(len(labels)) % 7 > 0, torch.tensor(-1))

    images = SomeAreBroken(DEIT)
    accuracy = evaluate(new_network(images), images, Ranks(0, 1, torch.device("cpu")), "fp32")
    broken = np.arange(images.num_test) % 7 == 0
    assert (accuracy.predictions.predicted[broken] == -1).all()
    assert (accuracy.predictions.predicted[~broken] >= 0).all()
    assert 100 * accuracy.predictions.is_right[~broken].mean() == pytest.approx(accuracy.top1_percent)
    assert not accuracy.predictions.is_right[broken].any()


def new_network(images):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, images.info.num_classes))
