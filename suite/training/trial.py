"""A model's trial before a night of training: whether it builds, learns and can be stored, and what that takes.

Random images, one small batch, on the CPU.
"""

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from torch import Tensor, nn

from suite.base.errors import FOREIGN_ERRORS, SpecError
from suite.models.registry import count_parameters
from suite.spec.experiment import Experiment
from suite.training.start import fresh_network

_NUM_IMAGES = 4  # batch norms over a single pixel need more than one
_BYTES_OF_TRIAL = 20  # of a parameter: fp32 in two networks, with gradients, and as it is saved and loaded
_BYTES_PER_PARAMETER = 16  # fp32: the weight, its gradient, and the two moments of Adam


@dataclass(frozen=True)
class Finding:
    """The answer to one question; ``problem`` is empty where it is yes, and ``cure`` says what to do about one."""

    question: str
    problem: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Size:
    """The memory that training a network takes, in bytes of fp32, with AdamW."""

    num_parameters: int
    bytes_of_model: int  # weights, gradients and optimizer
    bytes_per_image: int  # that are kept for the backward pass

    def bytes_of_batch(self, batch_size: int) -> int:
        return self.bytes_of_model + batch_size * self.bytes_per_image


def try_experiment(experiment: Experiment, num_classes: int) -> Iterator[Finding]:
    """Try the model of an experiment at its image size by its recipe, answer by answer, up to the first problem."""
    try:
        for finding in _try(experiment, num_classes):
            yield finding
            if finding.problem:
                return
    except FOREIGN_ERRORS as error:
        yield Finding("comes through the next check", _first_line(error), "correct what the model raises there")


def _try(experiment: Experiment, num_classes: int) -> Iterator[Finding]:
    size = experiment.image_size
    yield from _ask_of_memory(functools.partial(fresh_network, experiment, num_classes), size)
    question = f"builds for {num_classes} classes and images of {size} pixels"
    try:
        network = fresh_network(experiment, num_classes)
    except SpecError as error:
        yield Finding(question, str(error), "correct the model or its options")
        return
    yield Finding(question)
    images, labels = _draw(size, num_classes)
    question = f"images ({_NUM_IMAGES}, 3, {size}, {size}) become logits ({_NUM_IMAGES}, {num_classes})"
    try:
        logits = _forward(network, images)
    except FOREIGN_ERRORS as error:
        yield Finding(question, f"{type(error).__name__}: {error}", "let forward take any batch of such images")
        return
    yield _ask_of_shape(question, logits, num_classes)
    yield from _ask_of_learning(network, logits, labels)
    with torch.no_grad():
        evaluated = network.eval()(images)
        yield _ask_of_shape("and in evaluation, too", evaluated, num_classes)
        same = torch.equal(network(images), evaluated)
    cure = "draw no random numbers in evaluation (self.training says which it is), and let forward change no state"
    yield Finding("the same twice in evaluation", "" if same else "the same images get other logits each time", cure)
    yield from _ask_of_keeping(experiment, num_classes, network, logits)


def _ask_of_memory(make: Callable[[], nn.Module], image_size: int) -> Iterator[Finding]:
    """Ask before anything is allocated; of a network that cannot live on the meta device nothing is known."""
    try:
        size = measure_size(make, image_size, "meta")
    except FOREIGN_ERRORS:
        return
    needed = _BYTES_OF_TRIAL * size.num_parameters + _NUM_IMAGES * size.bytes_per_image
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    question = f"a trial of its {size.num_parameters:,} parameters fits in memory, with {needed / 1e9:,.1f} GB"
    problem = f"this machine has {memory / 1e9:,.1f} GB" if needed > memory else ""
    yield Finding(question, problem, "make it smaller, or go to a machine with more memory")


def _ask_of_shape(question: str, logits: object, num_classes: int) -> Finding:
    found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    right = found == (_NUM_IMAGES, num_classes)
    return Finding(question, "" if right else f"found {found}", "return one row of num_classes logits an image")


def _ask_of_learning(network: nn.Module, logits: Tensor, labels: Tensor) -> Iterator[Finding]:
    loss = F.cross_entropy(logits, labels)
    problem = "" if torch.isfinite(loss) else f"found {loss.item()}"
    yield Finding(
        "the loss is finite", problem, "start with smaller weights, or normalize what goes into the last layer"
    )
    question, cure = "every trainable parameter gets a gradient", "use them in forward, or set requires_grad=False"
    try:
        loss.backward()
    except RuntimeError as error:
        yield Finding(question, _first_line(error), "let the logits follow from the parameters, without detach")
        return
    without = [name for name, p in network.named_parameters() if p.requires_grad and p.grad is None]
    yield Finding(question, f"none in {', '.join(without)}" if without else "", cure)
    wild = [name for name, p in network.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    yield Finding("all gradients are finite", f"not in {', '.join(wild)}" if wild else "", "start with smaller weights")


def _ask_of_keeping(experiment: Experiment, num_classes: int, network: nn.Module, logits: Tensor) -> Iterator[Finding]:
    images, _ = _draw(experiment.image_size, num_classes)
    same = torch.equal(_forward(fresh_network(experiment, num_classes), images), logits)
    cure = "draw random numbers from torch alone, which is seeded; keep no state outside of the network"
    yield Finding("the same numbers twice", "" if same else "two networks of one seed differ", cure)
    question = "the same after saving and loading"
    cure = "keep all state in parameters and buffers; a tensor that two modules share cannot be saved twice"
    other = fresh_network(experiment.with_seed(1), num_classes)
    try:
        other.load_state_dict(load(save({name: value.contiguous() for name, value in network.state_dict().items()})))
    except (RuntimeError, ValueError, TypeError) as error:
        yield Finding(question, _first_line(error), cure)
        return
    with torch.no_grad():
        same = torch.equal(network.eval()(images), other.eval()(images))
    yield Finding(question, "" if same else "the loaded network computes other logits", cure)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"


def _draw(image_size: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Images (B, 3, S, S) and labels (B,), always the same."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(_NUM_IMAGES, 3, image_size, image_size, generator=generator)
    return images, torch.arange(_NUM_IMAGES) % num_classes


def _forward(network: nn.Module, images: Tensor) -> Tensor:
    """Compute the logits of a training step, whose own draws are always the same."""
    torch.manual_seed(2)
    logits: Tensor = network.train()(images)
    return logits


def measure_size(make: Callable[[], nn.Module], image_size: int, device: str) -> Size:
    """Measure a network on a device: "meta", where nothing is computed, or "cpu" for one that cannot live there."""
    with torch.device(device):
        network = make().train()
        images = torch.zeros(_NUM_IMAGES, 3, image_size, image_size)
    own = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(images)
    trainable = sum(p.numel() for p in network.parameters() if p.requires_grad)
    fixed = 4 * (count_parameters(network) - trainable)
    return Size(
        num_parameters=count_parameters(network),
        bytes_of_model=_BYTES_PER_PARAMETER * trainable + fixed,
        bytes_per_image=sum(kept.values()) // _NUM_IMAGES,
    )
