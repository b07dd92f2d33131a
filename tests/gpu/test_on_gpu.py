"""On a GPU a training repeats bit by bit, also after an interruption, and computes what the CPU computes.

Without a GPU these tests are skipped; ``GPU_TESTS_ON=cpu`` rehearses them on the CPU, in a small form.
"""

import gc
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from imagesets.loader import ImageLoader
from suite.models.registry import build_model, list_models, reference_input
from suite.papers import get_suite
from suite.papers.convit import recipes as convit
from suite.papers.shared.deit_recipes import DEIT, DEIT_CIFAR
from suite.spec.experiment import Experiment
from suite.spec.resources import Resources
from suite.store.run_directory import RunDirectory
from suite.training import distributed
from suite.training.environment import StopRequest, processor_name
from suite.training.loop import Interrupted, Training

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
SMALL = not torch.cuda.is_available()
RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # a training in this process leaves them
RESOURCES = Resources(device="cpu" if SMALL else "gpu", num_evaluations=1)
MODELS = [
    name for name in list_models() if not SMALL or (name != "cmhsa" and not any(size in name for size in ("_b", "_s")))
]


def shorten(experiment, steps, batch_size):
    """The same model and recipe for a few steps on the packaged images, 320 of them, from a fresh start."""
    changes = {"batch_size": batch_size, "epochs": steps * batch_size / 320, "warmup_epochs": 0.0}
    changes |= {"milestones": (), "mix_group": 0}
    fresh = {"kind": "training", "kind_options": {}, "parents": (), "train_fraction": 1.0, "dataset": "cifar10_sample"}
    return experiment.model_copy(update={"recipe": experiment.recipe.model_copy(update=changes), **fresh})


def of_model(model, steps, batch_size, size=32, precision="fp32"):
    recipe = DEIT.model_copy(update={"precision": precision, "drop_path": 0.0})
    return shorten(Experiment(model=model, dataset="cifar10", image_size=size, recipe=recipe), steps, batch_size)


def of_suite(suite, profile, model):
    return next(each for each in get_suite(suite).profile(profile).experiments() if each.model == model)


KINDS = (  # one of each kind of training
    convit.paper("deit", "Ti"),  # 224 pixels, DeiT's whole augmentation, bf16
    of_suite("init_datasets", "gpu", "vit_t"),  # clipping, RandAugment
    of_suite("cordonnier_cifar10", "gpu", "resnet18_cifar"),
    of_suite("cmhsa_cifar100", "paper", "cmhsa"),
    of_suite("cordonnier_cifar10", "gpu", "sa_learned"),
)
RECIPES = {experiment.model: experiment.recipe for experiment in KINDS} | {
    "plain": DEIT_CIFAR,
    "jitter": DEIT_CIFAR.model_copy(update={"color_jitter": 0.4, "cutmix": 1.0}),
}


def shrink(experiment):
    """The same kind of network, which a CPU trains in no time."""
    smaller = {"width": 8} if experiment.model.startswith("resnet") else {"depth": 1}
    options = {**experiment.model_options, **smaller}
    return experiment.model_copy(update={"model_options": options, "image_size": min(experiment.image_size, 32)})


def new_run(folder, experiment):
    run = RunDirectory.of(folder, experiment)
    run.create(experiment)
    return run


def losses(run):
    return [line["loss"] for line in run.read_metrics() if "loss" in line]


# -- trainings in this process, which need no start


@pytest.fixture(scope="module")
def alone():
    """This process, set up as that of a run."""
    threads = torch.get_num_threads()
    with patch.dict(os.environ):
        yield distributed.start(RESOURCES)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.allow_tf32 = True
    torch.set_num_threads(threads)


class StopAt(StopRequest):
    """A request that no signal makes: it comes once a training has done so many steps; 0 is never."""

    def __init__(self, training, step):
        self._training, self._step = training, step

    def __bool__(self):
        return 0 < self._step <= self._training.progress.step


def train(run, ranks, stop_at=0, **changes):
    """Train from the newest checkpoint; a training that is stopped leaves one, and no weights."""
    changes["device"] = "cpu" if ranks.device.type == "cpu" else "gpu"
    resources = RESOURCES.model_copy(update=changes)
    training = Training(run, run.read_experiment(), resources, ranks)
    with suppress(Interrupted):
        training.run(StopAt(training, stop_at))
    del training
    gc.collect()
    torch.cuda.empty_cache()


@pytest.fixture
def synchronizations(recwarn):
    """Counts where the host has waited for the GPU, by file and line, as far as PyTorch notices."""
    warnings.simplefilter("always")
    if not SMALL:
        torch.cuda.set_sync_debug_mode("warn")
    said = "synchronizing CUDA operation"
    yield lambda: Counter(f"{Path(w.filename).name}:{w.lineno}" for w in recwarn if said in str(w.message))
    if not SMALL:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("experiment", KINDS, ids=lambda experiment: experiment.model)
def test_a_training_repeated_or_resumed_gives_the_same_weights_bit_by_bit(
    tmp_path, experiment, alone, synchronizations, record_property
):
    steps, batch_size = (4, 4) if SMALL else (30, 64)
    experiment = shorten(shrink(experiment) if SMALL else experiment, steps, batch_size)
    first, second, resumed = (new_run(tmp_path / name, experiment) for name in ("first", "second", "resumed"))
    train(first, alone)
    record_property("synchronizations_per_step", sum(synchronizations().values()) / steps)
    record_property("synchronizations", dict(synchronizations().most_common(8)))
    train(second, alone)
    record_property("images_per_s", second.last_metrics()["images_per_s"])
    train(resumed, alone, stop_at=steps // 2)
    assert not resumed.weights_path.exists()
    train(resumed, alone)
    weights = first.weights_path.read_bytes()
    assert second.weights_path.read_bytes() == weights
    assert resumed.weights_path.read_bytes() == weights


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("model", MODELS)
def test_every_model_trains_by_deterministic_operators(tmp_path, model, precision, alone, record_property):
    steps, batch_size, size = (1, 4, 32) if SMALL else (10, 32, reference_input(model)[0])
    run = new_run(tmp_path, of_model(model, steps, batch_size, size, precision))
    train(run, alone)
    assert run.weights_path.exists()
    record_property("images_per_s", run.last_metrics()["images_per_s"])


GRAPHED = {
    "deit_micro": of_model("deit_micro", 30, 64),
    "bf16": of_model("vit_t", 30, 64, precision="bf16"),
    "dropout": of_model("sa_learned", 30, 64),
    "frozen gates": of_model("convit_micro", 30, 64).model_copy(model_options={"train_gates": False}),
    "clipped": shorten(KINDS[1], 30, 64),
    "stochastic depth": shorten(convit.gpu("convit", "Ti"), 30, 64),
}


@pytest.mark.skipif(SMALL, reason="CUDA graphs are of a GPU")
@pytest.mark.parametrize("experiment", GRAPHED.values(), ids=GRAPHED)
def test_a_training_by_cuda_graphs_gives_the_bits_of_an_eager_one(tmp_path, experiment, alone):
    graphed, eager = (new_run(tmp_path / name, experiment) for name in ("graphed", "eager"))
    train(graphed, alone, stop_at=15, cuda_graphs=True, num_evaluations=3)
    train(graphed, alone, cuda_graphs=True, num_evaluations=3)
    train(eager, alone)
    assert graphed.weights_path.read_bytes() == eager.weights_path.read_bytes()


@pytest.mark.skipif(SMALL, reason="CUDA graphs are of a GPU")
def test_a_network_with_batch_norms_is_trained_without_graphs(tmp_path, alone, capsys):
    experiment = of_model("resnet18_cifar", 10, 32)
    asked, eager = (new_run(tmp_path / name, experiment) for name in ("asked", "eager"))
    train(asked, alone, cuda_graphs=True)
    assert "training without CUDA graphs" in capsys.readouterr().out
    train(eager, alone)
    assert asked.weights_path.read_bytes() == eager.weights_path.read_bytes()


# -- beside the CPU


def relative(found, expected):
    """The L2 norm of the difference over that of the expected, of all tensors together."""
    found, expected = (torch.cat([tensor.double().cpu().flatten() for tensor in both]) for both in (found, expected))
    return ((found - expected).norm() / expected.norm()).item()


def forward_backward(model, images, labels):
    """Logits, and all gradients."""
    model.zero_grad()
    logits = model(images)
    F.cross_entropy(logits, labels).backward()
    return logits.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("model", MODELS)
def test_a_forward_and_backward_pass_equals_the_cpu_s(model, alone, record_property):
    torch.manual_seed(0)
    model = build_model(model, num_classes=10, image_size=32).eval()
    images, labels = torch.randn(8, 3, 32, 32), torch.arange(8)
    expected, gradients = forward_backward(model, images, labels)
    found = forward_backward(model.to(alone.device), images.to(alone.device), labels.to(alone.device))
    errors = relative([found[0]], [expected]), relative(found[1], gradients)
    record_property("errors", errors)
    assert errors[0] < 1e-4
    assert errors[1] < 1e-3


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_an_augmented_batch_equals_the_cpu_s_but_for_roundings_and_is_not_waited_for(
    recipe, alone, recwarn, synchronizations, record_property
):
    experiment = Experiment(model="deit_micro", dataset="cifar10", image_size=32, recipe=recipe)
    images = ImageLoader(shorten(experiment, steps=4, batch_size=64), Resources())
    next(images.train_batches(0, 1, device=alone.device))
    recwarn.clear()
    batches = list(images.train_batches(0, 3, device=alone.device))
    assert not synchronizations()
    by_itself = next(images.train_batches(2, 3, device=alone.device))
    assert all(map(torch.equal, by_itself, batches[2]))
    for step, found in enumerate(batches):
        expected = images.train_batch(step)
        torch.testing.assert_close(found.labels.cpu(), expected.labels)
        difference = (found.images.cpu() - expected.images).abs()
        record_property(f"largest_of_step_{step}", difference.max().item())
        assert (difference > 1e-4).float().mean() < 1e-3  # RandAugment may enlarge a value at a rounding edge
        assert recipe.rand_augment or difference.max() < 0.02  # one of 256 levels, normalized


@pytest.mark.parametrize("model", ["vit_t", "convit_micro", "resnet18_cifar"])
def test_the_first_losses_of_a_training_equal_the_cpu_s(tmp_path, model, alone):
    experiment = of_model(model, *((3, 8) if SMALL else (5, 32)))  # later ones drift apart
    found, expected = (new_run(tmp_path / name, experiment) for name in ("found", "expected"))
    train(found, alone)
    train(expected, distributed.Ranks(0, 1, torch.device("cpu")))
    assert losses(found) == pytest.approx(losses(expected), rel=1e-2)


# -- runs in processes of their own


def start(run, **changes):
    """Start a run as nodes do."""
    resources = RESOURCES.model_copy(update=changes).model_dump_json()
    command = [sys.executable, "-m", "suite.execute", str(run.path), "--resources", resources]
    ours = {name: value for name, value in os.environ.items() if name not in RANK}
    with run.log_path.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**ours, "OMP_NUM_THREADS": "1"})


def execute(folder, experiment, **changes):
    run = new_run(folder, experiment)
    assert start(run, **changes).wait(600) == 0, run.log_path.read_text()
    return run


def test_a_training_killed_and_started_again_ends_with_the_same_weights(tmp_path):
    size = ("convit_micro", 60, 16, 32) if SMALL else ("convit_ti", 200, 64, 224)
    experiment, often = of_model(*size, precision="bf16"), {"checkpoint_every_s": 0.5}
    whole, killed = execute(tmp_path / "whole", experiment, **often), new_run(tmp_path / "killed", experiment)
    process = start(killed, **often)
    while process.poll() is None and killed.newest_checkpoint() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not killed.result_path.exists(), "it was killed too late"
    assert start(killed, **often).wait(600) == 0, killed.log_path.read_text()
    begun = [line for line in killed.log_path.read_text().splitlines() if line.startswith("training steps ")]
    assert len(begun) == 2
    assert not begun[1].startswith("training steps 0 ")
    assert killed.weights_path.read_bytes() == whole.weights_path.read_bytes()


EXPERIMENT = of_model("convit_micro", *((6, 32) if SMALL else (60, 32)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return execute(tmp_path_factory.mktemp("plain") / "run", EXPERIMENT)


def test_a_result_names_its_device_and_what_it_took(plain, record_property):
    result = plain.read_result()
    assert result.device == (processor_name() if SMALL else torch.cuda.get_device_name())
    assert 0 < result.peak_memory_gb < 100
    record_property("energy_kwh", result.energy_kwh)  # None where NVML, or pynvml, is not there


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_zero_ends_with_the_weights_of_plain_training(tmp_path, plain, zero_stage):
    found = load_file(execute(tmp_path, EXPERIMENT, zero_stage=zero_stage).weights_path)
    expected = load_file(plain.weights_path)
    assert relative([found[name] for name in expected], expected.values()) < 1e-4  # sums have another order


def test_micro_batches_accumulate_to_the_whole_batch(tmp_path, plain):
    parts = execute(tmp_path, EXPERIMENT, micro_batch_size=8)
    assert losses(parts)[0] == pytest.approx(losses(plain)[0], rel=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_grid_trains_and_builds_its_board(tmp_path, precision):
    command = [sys.executable, str(ROOT / "launchers/grid.py"), "--suite", "sample_efficiency", "--profile", "smoke"]
    command += ["--device", RESOURCES.device, "--precision", precision, "--runs", str(tmp_path)]
    command += ["--only", "train_fraction=0.0375"] if SMALL else ["--max-parallel", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("leaderboards/sample_efficiency/smoke*.md"))
