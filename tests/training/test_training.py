"""DeepSpeed training against a plain PyTorch loop, and how a run ends that cannot go on."""

import errno
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from imagesets.loader import ImageLoader
from suite.base.errors import RunError
from suite.base.exit_codes import Exit
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.custom_model import ModelSource, hash_source
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store import attempts
from suite.store.results import PROTOCOL_VERSION
from suite.store.run_directory import RunDirectory
from suite.store.run_status import read_run_status
from suite.training import checkpoint, distributed
from suite.training.checkpoint_files import Origin
from suite.training.learning_rate import LearningRate
from suite.training.loop import Training
from suite.training.optim import build_optimizer

RECIPE = DEIT_LAPTOP.model_copy(
    update={"epochs": 1.0, "batch_size": 32, "warmup_epochs": 0.2, "label_smoothing": 0.1, "clip_grad_norm": 1.0}
)
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE, seed=5)


@pytest.fixture
def train(execute):
    """Run in processes of their own, as every run does; gives (exit status, run directory)."""

    def train(store, experiment=EXPERIMENT, **resources):
        run = RunDirectory.of(store, experiment)
        run.create(experiment)
        (status,) = set(execute(run, Resources(**resources)))
        return status, run

    return train


@pytest.fixture(scope="module")
def plain_weights():
    """The same training written out in plain PyTorch: one process, no engine."""
    images = ImageLoader(EXPERIMENT)
    torch.manual_seed(EXPERIMENT.seed)
    model = build_model(EXPERIMENT.model, num_classes=10, image_size=32)
    optimizer = build_optimizer(model, RECIPE)
    learning_rate = LearningRate(optimizer, RECIPE, images.num_steps)
    for step in range(images.num_steps):
        learning_rate.set(step)
        batch, labels = images.train_batch(step)
        optimizer.zero_grad()
        F.cross_entropy(model(batch), labels, label_smoothing=0.1).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.state_dict()


@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"micro_batch_size": 8},
        {"num_ranks": 2},
        {"num_ranks": 2, "zero_stage": 1},
        {"num_ranks": 2, "zero_stage": 2},
        {"num_ranks": 2, "zero_stage": 3},
    ],
    ids=str,
)
def test_every_way_to_run_gives_the_weights_of_plain_pytorch(train, tmp_path, plain_weights, resources):
    status, run = train(tmp_path, **resources)
    assert status == 0, run.log_path.read_text()
    weights = load_file(run.weights_path)
    assert set(weights) == set(plain_weights)
    unused = "pos_proj.bias"  # without effect on the model: its gradient is rounding noise, which Adam scales up
    for name, expected in plain_weights.items():
        if unused not in name:
            torch.testing.assert_close(weights[name], expected, rtol=1e-3, atol=2e-4, msg=f"{name}: {{}}".format)


def test_zero_3_trains_and_evaluates_a_model_whose_weights_are_really_cut_in_pieces(train, tmp_path):
    # DeepSpeed keeps tensors of under 100,000 elements whole: this model's MLP is larger
    options = {"dim": 180, "depth": 1}
    experiment = EXPERIMENT.model_copy(update={"model": "deit_micro", "model_options": options})
    accuracies = []
    for store, stage in ((tmp_path / "whole", 0), (tmp_path / "pieces", 3)):
        status, run = train(store, experiment, num_ranks=2, zero_stage=stage)
        assert status == 0, run.log_path.read_text()
        accuracies.append(run.read_result().test_loss)
    assert accuracies[0] == pytest.approx(accuracies[1], rel=1e-4)


ONE_STEP = """
import sys, torch, torch.nn.functional as F
from safetensors.torch import save_file
from suite.models.registry import build_model
from suite.papers.shared.deit_recipes import DEIT_LAPTOP
from suite.spec.resources import Resources
from suite.training import distributed

def start_model():
    torch.manual_seed(0)
    model = build_model("deit_micro", num_classes=10, image_size=32, dim=180, depth=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) / 50
    return model

def draw(rank):
    return torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(rank)), torch.arange(16) % 10

if __name__ == "__main__":
    stage, path = int(sys.argv[1]), sys.argv[2]
    resources = Resources(num_ranks=2, zero_stage=stage)
    ranks = distributed.start(resources)
    model, recipe = start_model(), DEIT_LAPTOP.model_copy(update={"precision": "bf16", "batch_size": 32})
    engine = distributed.initialize(model, torch.optim.SGD(model.parameters(), lr=1.0), recipe, resources)
    images, labels = draw(ranks.rank)
    engine.backward(F.cross_entropy(engine(images).float(), labels))
    engine.step()
    weights = distributed.full_state_dict(engine, stage)
    if ranks.is_first:
        save_file(weights, path)
    distributed.stop()
"""


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_bf16_on_two_ranks_has_plain_pytorchs_gradients_and_keeps_fp32_weights(fork, ranks, tmp_path, stage):
    # the MLP's weights, of 129,600 elements, are what stage 3 cuts in pieces
    path, names = tmp_path / "weights.safetensors", {"__name__": "reference"}
    processes = [fork(ONE_STEP, stage, path, log=tmp_path / "log", **place) for place in ranks(2)]
    exec(ONE_STEP, names)
    model = names["start_model"]()
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    for rank in range(2):
        images, labels = names["draw"](rank)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(images)
        (F.cross_entropy(logits.float(), labels) / 2).backward()
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [0, 0], (tmp_path / "log").read_text()
    weights = load_file(path)
    for name, parameter in model.named_parameters():
        error = (start[name] - weights[name] - parameter.grad).norm() / parameter.grad.norm()
        assert error < 1e-4, f"{name}: {error:.1e}"  # of bf16: 2e-3


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # the layer without weights
def test_zero_3_refuses_a_layer_that_pruning_left_without_weights():
    model = torch.nn.Linear(4, 0)
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(RunError, match=r"weight is empty.*use --zero-stage 2 or less"):
        distributed.initialize(model, optimizer, RECIPE, Resources(zero_stage=3))


def test_bf16_stays_near_fp32(train, tmp_path, plain_weights):
    experiment = EXPERIMENT.model_copy(update={"recipe": RECIPE.model_copy(update={"precision": "bf16"})})
    status, run = train(tmp_path, experiment)
    assert status == 0, run.log_path.read_text()
    weights = load_file(run.weights_path)
    assert all(value.dtype == torch.float32 for value in weights.values())
    assert not torch.equal(weights["head.weight"], plain_weights["head.weight"])
    torch.testing.assert_close(weights["head.weight"], plain_weights["head.weight"], rtol=0, atol=2e-2)


def test_a_loss_that_is_not_finite_fails_the_run_and_says_where(train, tmp_path):
    recipe = RECIPE.model_copy(update={"learning_rate": 1e20, "warmup_epochs": 0.0, "clip_grad_norm": 0.0})
    status, run = train(tmp_path, EXPERIMENT.model_copy(update={"recipe": recipe}))
    assert status == Exit.FAILED
    failure = run.read_failure()
    assert failure.kind == "error"
    assert "training loss is nan at step" in failure.reason
    assert failure.log_path == str(run.log_path)
    assert read_run_status(run, {}).state == "failed"


def test_a_model_that_would_end_the_process_fails_its_run_and_says_so(train, tmp_path):
    code = """
import sys
from torch import nn
class Model(nn.Linear):
    def __init__(self, *, num_classes, image_size):
        super().__init__(3 * image_size**2, num_classes)
    def forward(self, images):
        sys.exit(0)
"""
    source = ModelSource(kind="file", name="Model", version=hash_source(code.encode()), code=code)
    status, run = train(tmp_path, EXPERIMENT.model_copy(update={"model": "mine", "model_source": source}))
    assert status == Exit.FAILED
    assert run.read_failure().reason == "SystemExit: 0"


def test_a_run_that_is_asked_for_its_best_is_evaluated_after_every_epoch(train, tmp_path):
    experiment = EXPERIMENT.model_copy(update={"recipe": RECIPE.model_copy(update={"epochs": 2.5})})
    status, run = train(tmp_path, experiment, num_evaluations=1, evaluate_every_epoch=True)
    assert status == 0
    evaluated = {line["step"]: line["top1_percent"] for line in run.read_metrics() if "top1_percent" in line}
    assert list(evaluated) == [10, 20, 25]
    result = run.read_result()
    assert (result.num_evaluations, result.best_top1_percent) == (3, max(evaluated.values()))


def test_a_checkpoint_that_does_not_fit_leaves_the_last_good_one(tmp_path):
    run = RunDirectory(tmp_path)
    (run.checkpoint_path / "step-7").mkdir(parents=True)

    class FullDisk:
        def save_checkpoint(self, folder, tag, **options):
            Path(folder, tag).mkdir(parents=True)
            raise OSError(errno.ENOSPC, "No space left on device")

    class Alone:
        is_first = True

        def barrier(self):
            pass

    with pytest.raises(RunError, match=r"no space left on the disk\. Free space"):
        checkpoint.save(FullDisk(), run, Alone(), Resources(), Origin(experiment="a"), 8, {})
    assert [path.name for path in run.checkpoint_path.iterdir()] == ["step-7"]
    assert run.newest_checkpoint() == 7


def test_a_checkpoint_of_another_protocol_is_not_gone_on_from(tmp_path):
    training = Training.__new__(Training)
    training.directory, training.norm_batch = RunDirectory(tmp_path), 0
    training._check_checkpoint(PROTOCOL_VERSION, training.norm_batch)
    with pytest.raises(RunError, match=r"made under protocol 1, expected 2.*Delete that folder and use --retry-failed"):
        training._check_checkpoint(1, training.norm_batch)


def test_a_result_bears_the_protocol_that_made_it(train, tmp_path):
    status, run = train(tmp_path)
    assert (status, run.read_result().protocol_version) == (0, PROTOCOL_VERSION)


def test_a_run_that_goes_on_from_a_checkpoint_after_its_last_step_logs_its_last_evaluation_once(train, tmp_path):
    run = RunDirectory.of(tmp_path, EXPERIMENT)
    run.weights_path.mkdir(parents=True)  # in the way of the weights, after all that is logged
    status, _ = train(tmp_path, checkpoint_every_s=0.001)
    assert (status, run.newest_checkpoint()) == (Exit.FAILED, 10)
    logged = run.read_metrics()
    run.weights_path.rmdir()
    run.failure_path.unlink()
    status, _ = train(tmp_path)
    assert (status, attempts.read_attempts(run)[-1].from_step) == (0, 10)
    assert run.read_metrics() == logged
    evaluated = [line["top1_percent"] for line in logged if "top1_percent" in line]
    result = run.read_result()
    assert (result.num_evaluations, result.top1_percent) == (len(evaluated), evaluated[-1])
