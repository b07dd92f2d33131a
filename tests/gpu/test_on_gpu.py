"""Only a GPU can show, in short, that it trains, repeats, and computes what the CPU computes. Skipped without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from imagesets.loader import ImageLoader
from suite.models.registry import build_model, list_models
from suite.papers.shared.deit import DEIT, DEIT_LAPTOP
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
RECIPE = DEIT_LAPTOP.model_copy(update={"epochs": 2.0, "batch_size": 32, "drop_path": 0.2, "clip_grad_norm": 1.0})
EXPERIMENT = Experiment(model="convit_micro", dataset="cifar10_sample", image_size=32, recipe=RECIPE)


def train(folder, experiment=EXPERIMENT, **resources):
    """Run in a process of its own, as every run does."""
    run = RunDirectory(folder)
    run.create(experiment)
    command = [sys.executable, "-m", "suite.execute", str(run.path), "--resources"]
    with run.log_path.open("ab") as log:
        command.append(Resources(device="gpu", **resources).model_dump_json())
        done = subprocess.run(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300)
    assert done.returncode == 0, run.log_path.read_text()
    return run


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_same_training_gives_the_same_weights_bit_by_bit(tmp_path, precision):
    recipe = RECIPE.model_copy(update={"precision": precision})
    experiment = EXPERIMENT.model_copy(update={"recipe": recipe})
    first, second = (train(tmp_path / name, experiment) for name in ("first", "second"))
    assert first.weights_path.read_bytes() == second.weights_path.read_bytes()
    assert first.read_result().device == torch.cuda.get_device_name()


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_zero_ends_with_the_weights_of_plain_training(tmp_path, zero_stage):
    plain, sharded = train(tmp_path / "plain"), train(tmp_path / "sharded", zero_stage=zero_stage)
    torch.testing.assert_close(load_file(sharded.weights_path), load_file(plain.weights_path), rtol=1e-3, atol=1e-5)


def test_micro_batches_accumulate_to_the_whole_batch(tmp_path):
    whole, parts = train(tmp_path / "whole"), train(tmp_path / "parts", micro_batch_size=8)
    assert parts.read_metrics()[0]["loss"] == pytest.approx(whole.read_metrics()[0]["loss"], rel=1e-3)


@pytest.mark.parametrize("name", list_models())
def test_a_model_s_forward_and_backward_pass_equal_the_cpu_s(name):
    torch.manual_seed(0)
    model = build_model(name, num_classes=10, image_size=32).eval()
    images, labels = torch.randn(4, 3, 32, 32), torch.arange(4)
    expected = model(images)
    F.cross_entropy(expected, labels).backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    with torch.backends.cudnn.flags(allow_tf32=False):
        found = model.cuda()(images.cuda())
        F.cross_entropy(found, labels.cuda()).backward()
    assert (found.cpu() - expected).norm() < 1e-4 * expected.norm()
    ours = torch.cat([p.grad.cpu().flatten() for p in model.parameters() if p.grad is not None])
    theirs = torch.cat([gradient.flatten() for gradient in gradients])
    assert (ours - theirs).norm() < 1e-3 * theirs.norm()


@pytest.mark.parametrize("recipe", [RECIPE, DEIT], ids=["plain", "whole augmentation"])
def test_an_augmented_batch_equals_the_cpu_s_but_for_a_few_roundings(recipe):
    recipe = recipe.model_copy(update={"batch_size": 64, "epochs": 1.0})
    images = ImageLoader(EXPERIMENT.model_copy(update={"recipe": recipe}))
    expected, found = images.train_batch(3), next(images.train_batches(3, 4, device=torch.device("cuda")))
    torch.testing.assert_close(found.labels.cpu(), expected.labels)
    difference = (found.images.cpu() - expected.images).abs()
    assert difference.max() < 0.02  # one of 256 levels, normalized
    assert (difference > 1e-4).float().mean() < 1e-3


def test_a_grid_trains_on_the_gpu(tmp_path):
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", "sample_efficiency", "--profile", "smoke"]
    command += ["--device", "gpu", "--runs", str(tmp_path), "--only", "train_fraction=0.03125"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
