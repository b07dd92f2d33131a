"""The network of a run before its first step: freshly initialized, or made from a finished run.

Seeds torch's global state, so that the same experiment always gets the same network.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from suite.base.errors import RunError
from suite.base.files import read_file, sha256_of
from suite.models.cmhsa import AttentionPhase, ConvolutionPhase, transfer
from suite.models.cordonnier.head_pruning import prune_heads
from suite.models.cordonnier.network import SelfAttentionNetwork
from suite.models.registry import build_model
from suite.spec.experiment import Experiment
from suite.store.results import Result
from suite.store.run_directory import RunDirectory
from suite.training.accelerator import is_gpu


@dataclass(frozen=True)
class Parent:
    """The finished run that another one takes over."""

    experiment: Experiment
    run: RunDirectory
    result: Result

    @property
    def weights_sha256(self) -> str:
        """Of the weights that it has left, also where its result is from before that was recorded."""
        return self.result.weights_sha256 or sha256_of(self.run.weights_path)


def choose_parent(run: RunDirectory, experiment: Experiment) -> Parent | None:
    """Of the experiment's parents the one with the best top-1 accuracy, the first of equals; None without parents.

    RunError if one of them is not finished, RecordError if one of their results cannot be read.
    """
    found = []
    for parent in experiment.parents:
        directory = run.of_parent(parent)
        result = directory.read_result()
        if result is None:
            raise RunError(f"{experiment.id} needs {parent.id}, which is not finished; the same grid trains it first")
        found.append(Parent(parent, directory, result))
    return max(found, key=lambda parent: parent.result.top1_percent, default=None)


def start_network(run: RunDirectory, experiment: Experiment, num_classes: int) -> nn.Module:
    """The network before the first step of ``experiment``, whose run is ``run``, on the CPU.

    RunError for a parent that is not finished or has lost its weights.
    """
    parent = choose_parent(run, experiment) if experiment.inherits_weights else None
    if parent is None:
        return fresh_network(experiment, num_classes)
    source = trained_network(parent.run, parent.experiment, num_classes)
    if experiment.kind == "transfer":
        network = fresh_network(experiment, num_classes)
        assert isinstance(source, ConvolutionPhase)
        assert isinstance(network, AttentionPhase)
        transfer(source, network)
        return network
    assert isinstance(source, SelfAttentionNetwork)
    limits: dict[str, Any] = dict(experiment.kind_options)
    return prune_heads(source, **limits)


def trained_network(run: RunDirectory, experiment: Experiment, num_classes: int) -> nn.Module:
    """The network that a finished run has left, on the CPU.

    RunError where its weights cannot be read, are not those that it has left, or are of another network.
    """
    network = start_network(run, experiment, num_classes)
    try:
        data, result = read_file(run.weights_path), run.read_result()
        found, expected = hashlib.sha256(data).hexdigest(), result.weights_sha256 if result is not None else ""
        if expected and found != expected:
            raise ValueError(f"it was damaged or changed, its SHA-256 is {found} and its result says {expected}")
        network.load_state_dict(load(data))
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"cannot take over {run.weights_path}: {reason}. Delete {run.result_path} to train that run again."
        ) from error
    return network


def has_batch_norm(network: nn.Module) -> bool:
    """Whether a training image's output depends on the images that the network sees with it."""
    return any(isinstance(module, _BatchNorm) for module in network.modules())


def set_memory_format(network: nn.Module, device: torch.device) -> nn.Module:
    """Keep the channels of a pixel beside each other on a GPU, where a network is made of convolutions.

    Its fast convolutions compute in that order, and would transpose images and weights before and after each. Returns
    the same network, which on a CPU, or without batch norms of images, stays as it is.
    """
    if is_gpu(device) and any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub leaves it out
        network.register_forward_pre_hook(_to_channels_last)
    return network


def _to_channels_last(network: nn.Module, images: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(image_BCHW.contiguous(memory_format=torch.channels_last) for image_BCHW in images)


def fresh_network(experiment: Experiment, num_classes: int) -> nn.Module:
    """The network of an experiment as it is initialized from its seed, whatever it starts from."""
    torch.manual_seed(experiment.seed)
    options: dict[str, Any] = dict(experiment.model_options)
    if experiment.recipe.drop_path:
        options["drop_path"] = experiment.recipe.drop_path
    return build_model(
        experiment.model,
        num_classes=num_classes,
        image_size=experiment.image_size,
        model_source=experiment.model_source,
        **options,
    )
