"""Which results an older version of the protocol made that no longer hold, and why.

What an experiment computes has changed in two ways. Where a field of the experiment shows the change, its identity is
another: nothing has to be said, the old runs belong to no experiment any more. Where no field shows it, the change
stands in ``CHANGES``, and voids the results that it concerns. All others stay, whatever version made them.

Between ``spec`` and ``records`` on the data's path: whoever reads a result asks here, by ``RunDirectory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from suite.spec.experiment import Experiment

PROTOCOL_VERSION = 2
"""Of what a training does: raised, with an entry in the changelog, when an experiment computes something else than it
did, so that results from before and after are never averaged."""

_GPUS = ("NVIDIA", "A100")  # by their names; older drivers leave the maker out


class Made(Protocol):
    """The facts of a result, or of a checkpoint, that decide whether it holds."""

    @property
    def experiment(self) -> Experiment: ...
    @property
    def device(self) -> str: ...
    @property
    def num_ranks(self) -> int: ...
    @property
    def protocol_version(self) -> int: ...


@dataclass(frozen=True)
class Checkpointed:
    """The run that a checkpoint belongs to, as far as a change may concern it."""

    experiment: Experiment
    device: str
    num_ranks: int
    protocol_version: int


@dataclass(frozen=True)
class Change:
    """Something that ``version`` computes otherwise than those before it.

    ``metrics``: the only fields of a result, or quantities of its log, that it concerns; () = the result as a whole.
    """

    version: int
    reason: str
    concerns: Callable[[Made], bool]
    metrics: tuple[str, ...] = ()


def _decays_position_bias(made: Made) -> bool:
    experiment = made.experiment
    return experiment.model in ("cmhsa", "cmhsa_micro") and experiment.is_trained and experiment.recipe.weight_decay > 0


def _trains_norm_of_frozen_gpsa(made: Made) -> bool:
    return made.experiment.model_options.get("train_gpsa") is False and made.experiment.is_trained


def _blends_gates_in_bf16(made: Made) -> bool:
    experiment, options = made.experiment, made.experiment.model_options
    is_gated = options.get("attention", "gated") == "gated" and options.get("num_gpsa_layers") != 0
    return experiment.model.startswith("convit_") and is_gated and experiment.recipe.precision == "bf16"


def _had_batch_statistics_of_several_ranks(made: Made) -> bool:
    return made.experiment.model in ("resnet18_cifar", "convmixer") and made.num_ranks > 1


def _is_on_gpu(made: Made) -> bool:
    return any(name in made.device for name in _GPUS)


def _was_half_tf32(made: Made) -> bool:
    return _is_on_gpu(made) and made.experiment.recipe.precision == "fp32"


CHANGES = (
    Change(1, "it is older than the first protocol", lambda made: True),
    Change(2, "weight decay reaches CMHSA's position bias, as by DeiT's rule", _decays_position_bias),
    Change(2, "the norm before frozen positional attention is frozen too", _trains_norm_of_frozen_gpsa),
    Change(2, "the gate of GPSA is no longer rounded to bf16", _blends_gates_in_bf16),
    Change(
        2,
        "running means of batch norm are averaged over the ranks, each of which had its own",
        _had_batch_statistics_of_several_ranks,
    ),
    Change(2, "fp32 on a GPU is the same in products and in convolutions, which were TF32", _was_half_tf32),
    Change(
        2,
        "the images that attention is looked at on are spread over the classes",
        lambda made: made.experiment.kind == "maps",
    ),
    Change(
        2,
        "the images that attention is looked at on are spread over the classes",
        lambda made: True,
        metrics=("mean_nonlocality", "nonlocality"),
    ),
    Change(
        2,
        "on GPUs the best accuracy is that of every epoch",
        _is_on_gpu,
        metrics=("best_top1_percent",),
    ),
)
"""Oldest first. Quadratic and learned encodings, whose maps and gradients are more accurate from version 2 on, are not
among them: their experiments have other identities since then."""


def why_void(made: Made) -> str:
    """Why a result, or a checkpoint, no longer holds as a whole; "" where it does."""
    if made.protocol_version > PROTOCOL_VERSION:
        return f"it was made under protocol {made.protocol_version}, and this code knows {PROTOCOL_VERSION}: update it"
    reasons = [change.reason for change in _since(made) if not change.metrics]
    if not reasons:
        return ""
    since = f"made under protocol {made.protocol_version}, expected {PROTOCOL_VERSION}"
    return f"{since}: {'; '.join(reasons)} (CHANGELOG.md names the tables)"


def void_metrics(made: Made) -> dict[str, str]:
    """Which single metrics of a result no longer hold, though the others do, and why."""
    return {metric: change.reason for change in _since(made) for metric in change.metrics}


def _since(made: Made) -> Iterator[Change]:
    """The changes that came after the result and concern it."""
    return (change for change in CHANGES if change.version > made.protocol_version and change.concerns(made))
